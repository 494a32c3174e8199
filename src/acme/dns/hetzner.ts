// DNS at Hetzner: zones in the Cloud API or in the old DNS console; knows no challenge.
import { destination } from "../../model/destination.ts";
import { defineDnsProvider, secret, settings, ttl, type DnsParts } from "./definition.ts";
import { Type as t } from "@sinclair/typebox";
import { isDocument } from "../../control/body.ts";
import { quote } from "../../net/quote.ts";
import { DnsError } from "./failure.ts";
import { normalName, quoteTxt, relativeName } from "./names.ts";
import { allPages, waitUntil } from "./pages.ts";
import type { DnsProviderClient, TxtRecord } from "./provider.ts";
import { type Ask, createApi, listIn } from "./request.ts";
import { createRecordClient, findZone } from "./txt-clients.ts";

const SERVICE = "Hetzner";
const CLOUD_URL = "https://api.hetzner.cloud/v1";
const CONSOLE_URL = "https://dns.hetzner.com/api/v1";
const PAGE = 50;
const ACTION_TIMEOUT_MS = 60_000;

interface Config {
  readonly api: "cloud" | "dns-console";
  readonly api_token: string;
  readonly ttl: number;
}

export default defineDnsProvider({
  type: "hetzner",
  title: "Hetzner",
  help: "Create an API token with the permission to read and write in the project that has the zone (Hetzner Console), or in the old DNS console.",
  config: settings({
    api_token: secret("API token"),
    api: destination(
      t.Unsafe<Config["api"]>({
        type: "string",
        enum: ["cloud", "dns-console"],
        default: "cloud",
        description:
          "cloud: zones in the Hetzner Console; dns-console: zones in the old DNS console",
      }),
    ),
    ttl: ttl(60, 60),
  }),
  example: { api_token: { $secret: "hetzner" } },
  create: (config, parts) =>
    config.api === "cloud" ? createCloudClient(config, parts) : createConsoleClient(config, parts),
});

/** Adds and removes single texts of a record set. */
function createCloudClient(config: Config, parts: DnsParts): DnsProviderClient {
  const ask = createApi({
    service: SERVICE,
    baseUrl: CLOUD_URL,
    headers: () => ({ authorization: `Bearer ${config.api_token}` }),
    secrets: [config.api_token],
    parts,
  });
  const zoneOf = (fqdn: string) =>
    findZone(fqdn, { zones: parts.zones, service: SERVICE }, async (name) => {
      const { status } = await ask({ method: "GET", path: `/zones/${name}`, accept: [404] });
      return status === 404 ? null : name;
    });
  const setPath = (zone: string, fqdn: string) =>
    `/zones/${zone}/rrsets/${relativeName(fqdn, zone) || "@"}/TXT`;
  const has = async (zone: string, { fqdn, value }: TxtRecord) => {
    const { json } = await ask({ method: "GET", path: setPath(zone, fqdn), accept: [404] });
    const set = isDocument(json) ? json["rrset"] : undefined;
    return listIn(set, "records").some((record) => record["value"] === quoteTxt(value));
  };
  const act = async (path: string, body: object) => {
    const { json } = await ask({ method: "POST", path, json: body });
    await waitForAction(ask, { json, token: config.api_token, signal: parts.signal });
  };
  return {
    async present(record) {
      const zone = await zoneOf(record.fqdn);
      if (await has(zone, record)) return;
      const records = [{ value: quoteTxt(record.value) }];
      await act(`${setPath(zone, record.fqdn)}/actions/add_records`, { ttl: config.ttl, records });
    },
    async cleanUp(record) {
      const zone = await zoneOf(record.fqdn);
      if (!(await has(zone, record))) return;
      const records = [{ value: quoteTxt(record.value) }];
      await act(`${setPath(zone, record.fqdn)}/actions/remove_records`, { records });
    },
    zones: () =>
      allPages(PAGE, async (page) => {
        const query = new URLSearchParams({ page: String(page), per_page: String(PAGE) });
        const { json } = await ask({ method: "GET", path: `/zones?${query}` });
        return listIn(json, "zones").map(({ name }) => normalName(String(name)));
      }),
  };
}

interface Started {
  readonly json: unknown;
  readonly token: string;
  readonly signal: AbortSignal | undefined;
}

async function waitForAction(ask: Ask, { json: started, token, signal }: Started) {
  let action = actionIn(started, token);
  const isDone = async () => {
    if (action.status === "running") {
      const { json } = await ask({ method: "GET", path: `/actions/${action.id}` });
      action = actionIn(json, token);
    }
    if (action.status === "error") {
      const said = action.said === "" ? "" : ` (${action.said})`;
      throw new DnsError(`${SERVICE} could not change the record${said}`);
    }
    return action.status !== "running";
  };
  await waitUntil(isDone, { what: `a change at ${SERVICE}`, timeoutMs: ACTION_TIMEOUT_MS, signal });
}

function actionIn(json: unknown, token: string) {
  const action = isDocument(json) && isDocument(json["action"]) ? json["action"] : {};
  const error = isDocument(action["error"]) ? action["error"] : {};
  const said = quote(error["message"], [token]);
  return { id: String(action["id"]), status: action["status"], said };
}

interface Zone {
  readonly id: string;
  readonly name: string;
}

function createConsoleClient(config: Config, parts: DnsParts): DnsProviderClient {
  const ask = createApi({
    service: SERVICE,
    baseUrl: CONSOLE_URL,
    headers: () => ({ "auth-api-token": config.api_token }),
    secrets: [config.api_token],
    parts,
  });
  return createRecordClient<Zone>({
    zoneOf: (fqdn) =>
      findZone(fqdn, { zones: parts.zones, service: SERVICE }, async (name) => {
        const query = new URLSearchParams({ name });
        // The status is 404 when the zone does not exist.
        const { json } = await ask({ method: "GET", path: `/zones?${query}`, accept: [404] });
        const found = listIn(json, "zones").find((zone) => zone["name"] === name);
        return found === undefined ? null : { id: String(found["id"]), name };
      }),
    async list(zone, fqdn) {
      const query = new URLSearchParams({ zone_id: zone.id });
      const { json } = await ask({ method: "GET", path: `/records?${query}` });
      const name = relativeName(fqdn, zone.name) || "@";
      return listIn(json, "records")
        .filter((record) => record["type"] === "TXT" && record["name"] === name)
        .map((record) => ({ id: String(record["id"]), value: String(record["value"]) }));
    },
    async add(zone, { fqdn, value }) {
      const name = relativeName(fqdn, zone.name) || "@";
      await ask({
        method: "POST",
        path: "/records",
        json: { zone_id: zone.id, type: "TXT", name, value: quoteTxt(value), ttl: config.ttl },
      });
    },
    async remove(_, id) {
      await ask({ method: "DELETE", path: `/records/${id}`, accept: [404] });
    },
    zones: () =>
      allPages(PAGE, async (page) => {
        const query = new URLSearchParams({ page: String(page), per_page: String(PAGE) });
        const { json } = await ask({ method: "GET", path: `/zones?${query}` });
        return listIn(json, "zones").map(({ name }) => normalName(String(name)));
      }),
  });
}
