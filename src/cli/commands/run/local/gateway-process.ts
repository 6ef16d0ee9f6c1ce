/** The gateway of a local fleet as a process of its own. Started by `local-fleet.ts`. */
import type { GatewaySettings } from "../../gateway/settings.ts";
import { serveGateway } from "../../gateway/serve-gateway.ts";
import { serveMember } from "./serve-member.ts";

serveMember(
  (plan) => serveGateway(plan as GatewaySettings),
  ({ url, adminUrl }) => ({ url, adminUrl }),
);
