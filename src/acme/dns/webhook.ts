// TXT records through a custom web service: POST present and cleanup, as in the provider httpreq of lego.
import { Type as t } from "@sinclair/typebox";
import { destination } from "../../model/destination.ts";
import { defineDnsProvider, secret, settings, word } from "./definition.ts";
import type { TxtRecord } from "./provider.ts";
import { createApi } from "./request.ts";

export default defineDnsProvider({
  type: "webhook",
  title: "Webhook",
  help: "Run a service that accepts POST /present and POST /cleanup with {fqdn, value}, and responds with 200 once the record is written.",
  config: settings({
    url: destination(
      t.String({
        maxLength: 2048,
        pattern: "^https?://[^\\s?#@]+$",
        errorMessage: "must be an http:// or https:// URL without user, query and fragment",
        description: "Base URL of /present and /cleanup",
        form: { title: "Address" },
      }),
    ),
    token: t.Optional(secret("Sent as `Authorization: Bearer`")),
    username: t.Optional(word("Sent with the password as `Authorization: Basic`")),
    password: t.Optional(secret("Password of the user name")),
  }),
  example: { url: "https://dns.example.com/acme", token: { $secret: "dns-webhook" } },
  create(config, parts) {
    const ask = createApi({
      service: "the webhook",
      baseUrl: config.url.replace(/\/+$/, ""),
      headers: () => authorization(config),
      secrets: [config.token, config.password],
      parts,
    });
    const send = async (path: string, { fqdn, value }: TxtRecord) => {
      await ask({ method: "POST", path, json: { fqdn: `${fqdn}.`, value } });
    };
    return {
      present: (record) => send("/present", record),
      cleanUp: (record) => send("/cleanup", record),
    };
  },
});

interface Credentials {
  readonly token?: string;
  readonly username?: string;
  readonly password?: string;
}

function authorization({ token, username, password = "" }: Credentials): Record<string, string> {
  if (token !== undefined) return { authorization: `Bearer ${token}` };
  if (username === undefined) return {};
  const pair = Buffer.from(`${username}:${password}`).toString("base64");
  return { authorization: `Basic ${pair}` };
}
