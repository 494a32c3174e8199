// Scripted DNS provider APIs, limited to TXT records; independent of our clients.
import { createHash } from "node:crypto";
import type { Answer, Asked, Play, World } from "./scripted-api.ts";

export const SECRET = "s3cret-token-of-the-test";

const bearer = ({ headers }: Asked, scheme = "Bearer") =>
  headers.get("authorization") === `${scheme} ${SECRET}`;

const absolute = (name: string, zone: string) =>
  name === "" || name === "@" ? zone : `${name}.${zone}`;

const notFound: Answer = { status: 404, body: { message: "not found" } };
const idOf = (zone: string) => `id-${zone}`;

/** Removes a record by its id. */
function remove(world: World, id: string): boolean {
  const before = world.records.length;
  world.records = world.records.filter((record) => record.id !== id);
  return world.records.length < before;
}

/** Replaces the texts of a name. */
function replace(
  world: World,
  at: { zone: string; name: string },
  values: readonly string[],
): void {
  world.records = [
    ...world.records.filter(({ name }) => name !== at.name),
    ...values.map((value) => ({ id: world.next(), ...at, value })),
  ];
}

const valuesOf = (world: World, name: string) =>
  world.records.filter((record) => record.name === name).map(({ value }) => value);

export const cloudflare: Play = {
  base: "https://api.cloudflare.com/client/v4",
  admit: (asked) =>
    bearer(asked)
      ? null
      : {
          status: 403,
          body: {
            success: false,
            errors: [{ code: 9109, message: `Invalid access token ${SECRET}` }],
          },
        },
  answer({ method, path, query, json }, world) {
    if (path === "/zones") {
      const wanted = query.get("name");
      const zones = world.zones.filter((zone) => wanted === null || zone === wanted);
      return {
        body: {
          success: true,
          errors: [],
          result: zones.map((name) => ({ id: idOf(name), name })),
        },
      };
    }
    const [, id = "", record = ""] =
      /^\/zones\/id-([^/]+)\/dns_records(?:\/(.+))?$/.exec(path) ?? [];
    if (method === "GET") {
      const found = world.records.filter(
        ({ name, zone }) => zone === id && name === query.get("name"),
      );
      return {
        body: {
          success: true,
          result: found.map((each) => ({ id: each.id, content: each.value })),
        },
      };
    }
    if (method === "DELETE")
      return remove(world, record)
        ? { body: { success: true } }
        : { status: 404, body: { success: false } };
    if (valuesOf(world, json.name).includes(json.content))
      return {
        status: 400,
        body: {
          success: false,
          errors: [{ code: 81058, message: "An identical record already exists." }],
        },
      };
    world.records.push({ id: world.next(), zone: id, name: json.name, value: json.content });
    return { body: { success: true } };
  },
};

export const digitalocean: Play = {
  base: "https://api.digitalocean.com/v2",
  admit: (asked) =>
    bearer(asked)
      ? null
      : { status: 401, body: { id: "Unauthorized", message: "Unable to authenticate you" } },
  answer({ method, path, query, json }, world) {
    if (path === "/domains") return { body: { domains: world.zones.map((name) => ({ name })) } };
    const [, zone = "", rest, id = ""] =
      /^\/domains\/([^/]+)(\/records(?:\/(.+))?)?$/.exec(path) ?? [];
    if (!world.zones.includes(zone)) return notFound;
    if (rest === undefined) return { body: { domain: { name: zone } } };
    if (method === "DELETE") return remove(world, id) ? { status: 204 } : notFound;
    if (method === "POST") {
      world.records.push({
        id: world.next(),
        zone,
        name: absolute(json.name, zone),
        value: json.data,
      });
      return { status: 201, body: { domain_record: json } };
    }
    const found = world.records.filter(({ name }) => name === query.get("name"));
    return {
      body: { domain_records: found.map((each) => ({ id: Number(each.id), data: each.value })) },
    };
  },
};

export const hetznerCloud: Play = {
  base: "https://api.hetzner.cloud/v1",
  admit: (asked) =>
    bearer(asked)
      ? null
      : {
          status: 401,
          body: { error: { code: "unauthorized", message: "unable to authenticate" } },
        },
  answer({ path, json }, world) {
    if (path === "/zones") return { body: { zones: world.zones.map((name) => ({ id: 1, name })) } };
    if (path.startsWith("/actions/")) return { body: { action: { id: 7, status: "success" } } };
    const [, zone = "", relative, action] =
      /^\/zones\/([^/]+)(?:\/rrsets\/([^/]+)\/TXT(?:\/actions\/(\w+))?)?$/.exec(path) ?? [];
    if (!world.zones.includes(zone)) return notFound;
    if (relative === undefined) return { body: { zone: { name: zone } } };
    const name = absolute(relative, zone);
    const values = valuesOf(world, name);
    if (action === undefined)
      return values.length === 0
        ? notFound
        : { body: { rrset: { records: values.map((value) => ({ value })) } } };
    const sent: string[] = json.records.map(({ value }: { value: string }) => value);
    if (action === "add_records") replace(world, { zone, name }, [...values, ...sent]);
    else
      replace(
        world,
        { zone, name },
        values.filter((value) => !sent.includes(value)),
      );
    return { status: 201, body: { action: { id: 7, status: "running" } } };
  },
};

export const hetznerConsole: Play = {
  base: "https://dns.hetzner.com/api/v1",
  admit: ({ headers }) =>
    headers.get("auth-api-token") === SECRET
      ? null
      : { status: 401, body: { message: "Invalid authentication credentials" } },
  answer({ method, path, query, json }, world) {
    if (path === "/zones") {
      const wanted = query.get("name");
      const zones = world.zones.filter((zone) => wanted === null || zone === wanted);
      if (zones.length === 0)
        return { status: 404, body: { error: { message: "zone not found", code: 404 } } };
      return { body: { zones: zones.map((name) => ({ id: idOf(name), name })) } };
    }
    if (method === "DELETE") return remove(world, path.slice("/records/".length)) ? {} : notFound;
    if (method === "POST") {
      const zone = json.zone_id.slice(3);
      world.records.push({
        id: world.next(),
        zone,
        name: absolute(json.name, zone),
        value: json.value,
      });
      return { body: { record: json } };
    }
    const zone = query.get("zone_id")?.slice(3) ?? "";
    const relative = (name: string) => (name === zone ? "@" : name.slice(0, -zone.length - 1));
    const found = world.records.filter((record) => record.zone === zone);
    return {
      body: {
        records: found.map(({ id, name, value }) => ({
          id,
          type: "TXT",
          name: relative(name),
          value,
        })),
      },
    };
  },
};

export const ovh: Play = {
  base: "https://eu.api.ovh.com/1.0",
  admit({ headers, method, full, text }) {
    const time = headers.get("x-ovh-timestamp") ?? "";
    const sum = createHash("sha1").update(`${SECRET}+consumer+${method}+${full}+${text}+${time}`);
    const isRight =
      headers.get("x-ovh-application") === "application" &&
      headers.get("x-ovh-consumer") === "consumer" &&
      headers.get("x-ovh-signature") === `$1$${sum.digest("hex")}`;
    return isRight
      ? null
      : { status: 403, body: { message: "Invalid signature", httpCode: "403 Forbidden" } };
  },
  answer({ method, path, query, json }, world) {
    if (path === "/domain/zone") return { body: world.zones };
    const [, zone = "", rest = "", id = ""] =
      /^\/domain\/zone\/([^/]+)\/(\w+)(?:\/(.+))?$/.exec(path) ?? [];
    if (rest === "refresh") return {};
    if (method === "DELETE") return remove(world, id) ? {} : notFound;
    if (method === "POST") {
      const name = absolute(json.subDomain, zone);
      world.records.push({ id: world.next(), zone, name, value: `"${json.target}"` });
      return { body: json };
    }
    if (id !== "") {
      const record = world.records.find((each) => each.id === id);
      return record === undefined ? notFound : { body: { id: Number(id), target: record.value } };
    }
    const name = absolute(query.get("subDomain") ?? "", zone);
    return {
      body: world.records.filter((each) => each.name === name).map((each) => Number(each.id)),
    };
  },
};

export const gandi: Play = {
  base: "https://api.gandi.net/v5/livedns",
  admit: (asked) =>
    bearer(asked)
      ? null
      : {
          status: 401,
          body: {
            code: 401,
            message: "The server could not verify that you authorized",
            object: "HTTPUnauthorized",
          },
        },
  answer({ method, path, json }, world) {
    if (path === "/domains") return { body: world.zones.map((fqdn) => ({ fqdn })) };
    const [, zone = "", relative] =
      /^\/domains\/([^/]+)(?:\/records\/([^/]+)\/TXT)?$/.exec(path) ?? [];
    if (!world.zones.includes(zone)) return { status: 403, body: { message: "not yours" } };
    if (relative === undefined) return { body: { fqdn: zone } };
    const name = absolute(relative, zone);
    if (method === "GET") {
      const values = valuesOf(world, name);
      return values.length === 0 ? notFound : { body: { rrset_values: values, rrset_ttl: 300 } };
    }
    replace(world, { zone, name }, method === "DELETE" ? [] : json.rrset_values);
    return {
      status: method === "DELETE" ? 204 : 201,
      ...(method === "DELETE" ? {} : { body: { message: "DNS Record Created" } }),
    };
  },
};

export const desec: Play = {
  base: "https://desec.io/api/v1",
  admit: (asked) =>
    bearer(asked, "Token") ? null : { status: 401, body: { detail: "Invalid token." } },
  answer({ method, path, query, json }, world) {
    if (path === "/domains/") {
      const wanted = query.get("owns_qname");
      const owning = world.zones
        .filter((zone) => wanted === null || wanted === zone || wanted.endsWith(`.${zone}`))
        .sort((one, other) => other.length - one.length);
      return { body: (wanted === null ? owning : owning.slice(0, 1)).map((name) => ({ name })) };
    }
    const [, zone = "", relative] =
      /^\/domains\/([^/]+)\/rrsets\/(?:([^/]+)\/TXT\/)?$/.exec(path) ?? [];
    if (method === "GET") {
      const values = valuesOf(world, absolute(relative ?? "", zone));
      return values.length === 0 ? notFound : { body: { records: values, ttl: 3600 } };
    }
    for (const set of json) {
      if (set.ttl < 3600)
        return {
          status: 400,
          body: [{ ttl: ["Ensure this value is greater than or equal to 3600."] }],
        };
      replace(world, { zone, name: absolute(set.subname, zone) }, set.records);
    }
    return { body: json };
  },
};
