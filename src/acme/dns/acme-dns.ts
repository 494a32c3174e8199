// DNS through an acme-dns server, which stores the last two texts of a name that `_acme-challenge` is a CNAME to.
import { Type as t } from "@sinclair/typebox";
import { destination } from "../../model/destination.ts";
import { defineDnsProvider, secret, settings, word } from "./definition.ts";
import { DnsError } from "./failure.ts";
import { normalName } from "./names.ts";
import { createApi } from "./request.ts";

export default defineDnsProvider({
  type: "acme-dns",
  title: "acme-dns",
  help: "Register at the server once (POST /register), and make _acme-challenge of each name a CNAME to the fulldomain of its response.",
  config: settings({
    url: destination(
      t.String({
        maxLength: 2048,
        pattern: "^https?://[^\\s?#@]+$",
        errorMessage: "must be an http:// or https:// URL without user, query and fragment",
        description: "URL of the server",
        form: { title: "Address" },
      }),
    ),
    username: word("From the response of the registration"),
    password: secret("From the response of the registration"),
    fulldomain: t.String({
      maxLength: 253,
      pattern: "^[A-Za-z0-9_-]+(?:\\.[A-Za-z0-9_-]+)+\\.?$",
      errorMessage: "must be the subdomain of the registration, a single DNS label",
      description: "From the response of the registration",
    }),
  }),
  example: {
    url: "https://auth.acme-dns.io",
    username: "c36f50e8-4632-44f0-83fe-e070fef28a10",
    password: { $secret: "acme-dns" },
    fulldomain: "8e5700ea-a4bf-41c7-8a77-e990661dcc6a.auth.acme-dns.io",
  },
  create(config, parts) {
    const name = normalName(config.fulldomain);
    const ask = createApi({
      service: "the acme-dns server",
      baseUrl: config.url.replace(/\/+$/, ""),
      headers: () => ({ "x-api-user": config.username, "x-api-key": config.password }),
      secrets: [config.password],
      parts,
    });
    return {
      async present({ fqdn, value }) {
        if (fqdn !== name)
          throw new DnsError(`${fqdn} must be a CNAME to ${name} at its own DNS provider`);
        const subdomain = name.split(".")[0];
        await ask({ method: "POST", path: "/update", json: { subdomain, txt: value } });
      },
      // The server overwrites the oldest of the two texts itself.
      cleanUp: () => Promise.resolve(),
      zones: () => Promise.resolve([name]),
    };
  },
});
