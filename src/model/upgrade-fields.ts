// Which upgrades a route passes (RFC 9110 section 7.8).
import { Type as t } from "@sinclair/typebox";
import { flag, listOf } from "./fields.ts";
import { since } from "./resource.ts";

export const upgradeFields = {
  websocket: flag(true, "Whether to proxy WebSocket handshakes and other upgrades", {
    title: "WebSocket",
    help: "Allows upgrades to WebSocket, as chats and dashboards use",
    group: "forward",
    order: 2,
  }),
  upgrade_protocols: since(
    9,
    listOf(
      t.String({ minLength: 1, maxLength: 128, form: { help: "A token of Upgrade" } }),
      "Protocols of the field Upgrade that pass, such as websocket; empty: all but those that carry HTTP, as h2c does",
      {
        maxItems: 20,
        form: {
          title: "Upgrade protocols",
          help: "Only these pass. Empty: WebSockets and all others but those that carry HTTP",
          example: "websocket",
          group: "forward",
          order: 2,
        },
      },
    ),
  ),
};
