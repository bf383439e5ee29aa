package xds

import (
	"strconv"
	"strings"
)

// Two scripts compute a cluster where no static route can: from the instance
// header, or from an authority that is not in lower case. So no table of
// instances exists, and a new instance changes no route. The common call, by
// authority in lower case, never gets here.

// scriptCommon has what both scripts need. A label is made as model.MeshName
// makes it.
const scriptCommon = `
local function authority_of(headers)
  return (string.gsub(string.lower(headers:get(":authority") or ""), ":%d+$", ""))
end

local function label_of(instance)
  if instance == "" then return "default." end
  return string.gsub(string.lower(instance), "[^a-z0-9-]", function(c)
    return string.format("_%02x", string.byte(c))
  end) .. "."
end

local function is_mesh_name(s)
  return string.find(s, "^[a-z0-9_-]+%.[a-z0-9_.]+$") ~= nil
    and string.find(s, "%.v%d+%.[a-z_][a-z0-9_]*$") ~= nil
end

-- choose returns the mesh name that authority and instance mean, or nil and
-- whether they contradict each other.
local function choose(headers)
  local authority = authority_of(headers)
  local instance = headers:get("carisma-instance")
  if instance == nil then
    if is_mesh_name(authority) then return authority end
    return nil, false
  end
  local label = label_of(instance)
  if is_mesh_name(authority) then
    if string.sub(authority, 1, #label) == label then return authority end
    return nil, true
  end
  local iface = string.match(headers:get(":path") or "", "^/([^/]+)/")
  if iface == nil then return nil, false end
  return label .. string.lower(iface)
end
`

// egressScript returns the script of the egress, which sends what it cannot decide to
// the gateway: that answers for itself and explains a contradiction. carisma.v1.Opaque
// is of the gateway's own package, but a service of the mesh where an instance is named.
func egressScript() string {
	own := make([]string, len(ownServices))
	for i, prefix := range ownServices {
		own[i] = strconv.Quote(prefix)
	}
	return scriptCommon + strings.ReplaceAll(egressChoice, "OWN", strings.Join(own, ", "))
}

const egressChoice = `
function envoy_on_route(handle)
  local headers = handle:headers()
  local path = headers:get(":path") or ""
  local opaque = string.sub(path, 1, 19) == "/carisma.v1.Opaque/"
  if not opaque and not is_mesh_name(authority_of(headers)) then
    for _, own in ipairs({OWN}) do
      if string.sub(path, 1, #own) == own then return "gateway" end
    end
  end
  return choose(headers) or "gateway"
end
`

// ingressScript serves callers that are no proxy of the mesh.
const ingressScript = scriptCommon + `
function envoy_on_route(handle)
  return (choose(handle:headers()) or "none") .. "/in"
end
`
