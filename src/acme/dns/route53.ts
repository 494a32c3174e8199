// DNS at Amazon Route 53: record sets in XML, with signed requests; waits until a change is in sync.
import { Type as t } from "@sinclair/typebox";
import { AwsV4Signer } from "aws4fetch";
import { defineDnsProvider, secret, settings, ttl, word } from "./definition.ts";
import { DnsError } from "./failure.ts";
import { normalName } from "./names.ts";
import { waitUntil } from "./pages.ts";
import { type Ask, type ApiAnswer, createApi, type Outgoing } from "./request.ts";
import { createValueSetClient, findZone } from "./txt-clients.ts";
import { elementsOf, escapeXml, textOf } from "./xml.ts";

const SERVICE = "Route 53";
const BASE_URL = "https://route53.amazonaws.com/2013-04-01";
const XMLNS = "https://route53.amazonaws.com/doc/2013-04-01/";
/** Amazon documents 60 s for a change to propagate. */
const SYNC_TIMEOUT_MS = 180_000;

export default defineDnsProvider({
  type: "route53",
  title: "Amazon Route 53",
  sentTo: BASE_URL,
  help: "Create an access key with the permissions route53:ListHostedZonesByName, ListHostedZones, ListResourceRecordSets, ChangeResourceRecordSets and GetChange.",
  config: settings({
    access_key_id: word("ID of the access key"),
    secret_access_key: secret("Secret access key"),
    session_token: t.Optional(secret("Session token of temporary credentials")),
    hosted_zone_id: t.Optional(word("Zone to write to; default: the longest zone of the name")),
    ttl: ttl(60, 1),
  }),
  example: { access_key_id: "AKIAIOSFODNN7EXAMPLE", secret_access_key: { $secret: "route53" } },
  create(config, parts) {
    const { secret_access_key, session_token, hosted_zone_id: fixed } = config;
    const ask = createApi({
      service: SERVICE,
      baseUrl: BASE_URL,
      headers: (request) => sign(request, config),
      secrets: [secret_access_key, session_token],
      complaint: ({ text }: ApiAnswer) => `${textOf(text, "Code")} ${textOf(text, "Message")}`,
      parts,
    });
    return createValueSetClient<string, string | null>(
      {
        zoneOf: async (fqdn) =>
          fixed ??
          findZone(fqdn, { zones: parts.zones, service: SERVICE }, (name) => zoneId(ask, name)),
        read: (zone, fqdn) => readRecords(ask, zone, fqdn),
        async write(zone, fqdn, { values, state }) {
          const next = values.length === 0 ? null : recordSet(fqdn, values, config.ttl);
          // DELETE names the values that were read: after a concurrent change the batch fails and changes nothing.
          const changes = changeOf("DELETE", state) + changeOf("CREATE", next);
          const body = `<?xml version="1.0" encoding="UTF-8"?><ChangeResourceRecordSetsRequest xmlns="${XMLNS}"><ChangeBatch><Changes>${changes}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>`;
          const { text } = await ask({
            method: "POST",
            path: `/hostedzone/${zone}/rrset/`,
            text: body,
          });
          await waitForChange(ask, text, parts.signal);
        },
        zones: () => allZones(ask),
      },
      parts,
    );
  },
});

const changeOf = (action: string, set: string | null): string =>
  set === null ? "" : `<Change><Action>${action}</Action>${set}</Change>`;

function recordSet(fqdn: string, values: readonly string[], seconds: number): string {
  const records = values
    .map((value) => `<ResourceRecord><Value>${escapeXml(value)}</Value></ResourceRecord>`)
    .join("");
  return `<ResourceRecordSet><Name>${escapeXml(fqdn)}.</Name><Type>TXT</Type><TTL>${seconds}</TTL><ResourceRecords>${records}</ResourceRecords></ResourceRecordSet>`;
}

/** `state`: the record set in the form that DELETE needs; null when there is none. */
async function readRecords(ask: Ask, zone: string, fqdn: string) {
  const query = new URLSearchParams({ maxitems: "1", name: `${fqdn}.`, type: "TXT" });
  const { text } = await ask({ method: "GET", path: `/hostedzone/${zone}/rrset?${query}` });
  const [set = ""] = elementsOf(text, "ResourceRecordSet");
  const isMeant = normalName(textOf(set, "Name")) === fqdn && textOf(set, "Type") === "TXT";
  if (!isMeant) return { values: [], state: null };
  if (textOf(set, "SetIdentifier") !== "")
    throw new DnsError(
      `${fqdn} has a routing policy at ${SERVICE}, which the gateway does not change`,
    );
  const values = elementsOf(set, "ResourceRecord").map((record) => textOf(record, "Value"));
  return { values, state: recordSet(fqdn, values, Number(textOf(set, "TTL"))) };
}

async function waitForChange(ask: Ask, text: string, signal: AbortSignal | undefined) {
  const id = textOf(text, "Id").replace(/^\/?change\//, "");
  let status = textOf(text, "Status");
  const isDone = async () => {
    if (status === "INSYNC") return true;
    const answer = await ask({ method: "GET", path: `/change/${id}` });
    status = textOf(answer.text, "Status");
    return status === "INSYNC";
  };
  await waitUntil(isDone, { what: `a change at ${SERVICE}`, timeoutMs: SYNC_TIMEOUT_MS, signal });
}

const zoneOf = (xml: string) => ({
  id: textOf(xml, "Id").replace(/^\/?hostedzone\//, ""),
  name: normalName(textOf(xml, "Name")),
  isPrivate: textOf(xml, "PrivateZone") === "true",
});

async function zoneId(ask: Ask, name: string): Promise<string | null> {
  const query = new URLSearchParams({ dnsname: `${name}.`, maxitems: "10" });
  const { text } = await ask({ method: "GET", path: `/hostedzonesbyname?${query}` });
  const zones = elementsOf(text, "HostedZone").map(zoneOf);
  return zones.find((zone) => zone.name === name && !zone.isPrivate)?.id ?? null;
}

async function allZones(ask: Ask): Promise<readonly string[]> {
  const names: string[] = [];
  let marker = "";
  do {
    const query = new URLSearchParams({ ...(marker === "" ? {} : { marker }), maxitems: "100" });
    const { text } = await ask({ method: "GET", path: `/hostedzone?${query}` });
    const zones = elementsOf(text, "HostedZone").map(zoneOf);
    names.push(...zones.filter(({ isPrivate }) => !isPrivate).map(({ name }) => name));
    marker = textOf(text, "IsTruncated") === "true" ? textOf(text, "NextMarker") : "";
  } while (marker !== "" && names.length < 5000);
  return names;
}

interface Key {
  readonly access_key_id: string;
  readonly secret_access_key: string;
  readonly session_token?: string;
}

/** AWS Signature Version 4. The global service of Route 53 is in us-east-1. */
async function sign(
  { method, url, body }: Outgoing,
  { access_key_id, secret_access_key, session_token }: Key,
): Promise<Record<string, string>> {
  const { headers } = await new AwsV4Signer({
    method,
    url,
    body,
    accessKeyId: access_key_id,
    secretAccessKey: secret_access_key,
    ...(session_token === undefined ? {} : { sessionToken: session_token }),
    service: "route53",
    region: "us-east-1",
  }).sign();
  return {
    ...Object.fromEntries(headers),
    ...(body === "" ? {} : { "content-type": "application/xml" }),
    accept: "application/xml",
  };
}
