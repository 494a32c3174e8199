// For tests of WebSocket messages that the gateway itself reads; knows no message.
import { hasTunnels } from "./engines.ts";
import { needs } from "./needs.ts";

export const reading = needs({
  lacks: hasTunnels
    ? "an engine that reads messages; tests/integration/sluice-engine has tunnels"
    : null,
});
