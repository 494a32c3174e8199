// DNS at OVHcloud: single records, with signed requests and a refresh of the zone after each change.
import { createHash } from "node:crypto";
import { Type as t } from "@sinclair/typebox";
import { isDocument } from "../../control/body.ts";
import { destination } from "../../model/destination.ts";
import { defineDnsProvider, secret, settings, ttl, word } from "./definition.ts";
import { normalName, relativeName } from "./names.ts";
import { createApi, type Outgoing } from "./request.ts";
import { createRecordClient, longestOf } from "./txt-clients.ts";

const SERVICE = "OVH";

const endpoints = {
  "ovh-eu": "https://eu.api.ovh.com/1.0",
  "ovh-ca": "https://ca.api.ovh.com/1.0",
  "ovh-us": "https://api.us.ovhcloud.com/1.0",
} as const;
const endpointNames = Object.keys(endpoints) as (keyof typeof endpoints)[];

export default defineDnsProvider({
  type: "ovh",
  title: "OVHcloud",
  help: "Create an application key and a consumer key with the rights GET, POST and DELETE on /domain/zone/* and GET on /domain/zone.",
  config: settings({
    endpoint: destination(
      t.Unsafe<keyof typeof endpoints>({
        type: "string",
        enum: endpointNames,
        default: "ovh-eu",
        description: "Region of the account",
      }),
    ),
    application_key: word("Application key"),
    application_secret: secret("Application secret"),
    consumer_key: secret("Consumer key"),
    ttl: ttl(60, 60),
  }),
  example: {
    application_key: "7kbG7Bk7S9Nt7ZSV",
    application_secret: { $secret: "ovh-application" },
    consumer_key: { $secret: "ovh-consumer" },
  },
  create(config, parts) {
    const { application_secret, consumer_key } = config;
    const ask = createApi({
      service: SERVICE,
      baseUrl: endpoints[config.endpoint],
      headers: (request) => sign(request, config, Math.floor(Date.now() / 1000)),
      secrets: [application_secret, consumer_key],
      parts,
    });
    const zones = async () => {
      const { json } = await ask({ method: "GET", path: "/domain/zone" });
      return Array.isArray(json) ? json.map((name) => normalName(String(name))) : [];
    };
    return createRecordClient<string>({
      zoneOf: (fqdn) => longestOf(fqdn, { zones, configured: parts.zones, service: SERVICE }),
      async list(zone, fqdn) {
        const query = new URLSearchParams({
          fieldType: "TXT",
          subDomain: relativeName(fqdn, zone),
        });
        const path = `/domain/zone/${zone}/record`;
        const { json: ids } = await ask({ method: "GET", path: `${path}?${query}` });
        const records: { id: string; value: string }[] = [];
        for (const id of Array.isArray(ids) ? ids.map(String) : []) {
          const { json } = await ask({ method: "GET", path: `${path}/${id}`, accept: [404] });
          if (isDocument(json) && typeof json["target"] === "string")
            records.push({ id, value: json["target"] });
        }
        return records;
      },
      async add(zone, { fqdn, value }) {
        await ask({
          method: "POST",
          path: `/domain/zone/${zone}/record`,
          json: {
            fieldType: "TXT",
            subDomain: relativeName(fqdn, zone),
            target: value,
            ttl: config.ttl,
          },
        });
      },
      async remove(zone, id) {
        await ask({ method: "DELETE", path: `/domain/zone/${zone}/record/${id}`, accept: [404] });
      },
      async finish(zone) {
        await ask({ method: "POST", path: `/domain/zone/${zone}/refresh` });
      },
      zones,
    });
  },
});

interface Keys {
  readonly application_key: string;
  readonly application_secret: string;
  readonly consumer_key: string;
}

/** As OVH describes its signatures; `seconds` since the Unix epoch. */
function sign(request: Outgoing, keys: Keys, seconds: number): Record<string, string> {
  const { method, url, body } = request;
  const text = [keys.application_secret, keys.consumer_key, method, url, body, seconds].join("+");
  return {
    "x-ovh-application": keys.application_key,
    "x-ovh-consumer": keys.consumer_key,
    "x-ovh-timestamp": String(seconds),
    "x-ovh-signature": `$1$${createHash("sha1").update(text).digest("hex")}`,
  };
}
