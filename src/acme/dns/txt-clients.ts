// Clients for the two kinds of DNS APIs: single records, and record sets. Knows no API.
import type { DnsParts } from "./definition.ts";
import { DnsError } from "./failure.ts";
import { longestZone, quoteTxt, suffixesOf, unquoteTxt } from "./names.ts";
import type { DnsProviderClient, TxtRecord } from "./provider.ts";

interface StoredTxt {
  readonly id: string;
  /** As in the API, with or without quotes. */
  readonly value: string;
}

export interface RecordApi<Z> {
  zoneOf(fqdn: string): Promise<Z>;
  /** TXT records of the name. */
  list(zone: Z, fqdn: string): Promise<readonly StoredTxt[]>;
  add(zone: Z, record: TxtRecord): Promise<void>;
  /** A missing record is no error. */
  remove(zone: Z, id: string): Promise<void>;
  /** Runs after a change of records. */
  finish?(zone: Z): Promise<void>;
  zones?(): Promise<readonly string[]>;
}

/** For APIs with single records. */
export function createRecordClient<Z>(api: RecordApi<Z>): DnsProviderClient {
  const { zones } = api;
  return {
    async present(record) {
      const zone = await api.zoneOf(record.fqdn);
      const known = await api.list(zone, record.fqdn);
      if (known.some(({ value }) => unquoteTxt(value) === record.value)) return;
      await api.add(zone, record);
      await api.finish?.(zone);
    },
    async cleanUp(record) {
      const zone = await api.zoneOf(record.fqdn);
      const known = await api.list(zone, record.fqdn);
      const ours = known.filter(({ value }) => unquoteTxt(value) === record.value);
      for (const { id } of ours) await api.remove(zone, id);
      if (ours.length > 0) await api.finish?.(zone);
    },
    ...(zones === undefined ? {} : { zones: () => zones.call(api) }),
  };
}

export interface ValueSetApi<Z, S = readonly string[]> {
  zoneOf(fqdn: string): Promise<Z>;
  /** The current texts of the name. */
  read(zone: Z, fqdn: string): Promise<{ readonly values: readonly string[]; readonly state: S }>;
  /** `values`: the unchanged ones as read, new ones quoted. */
  write(
    zone: Z,
    fqdn: string,
    next: { readonly values: readonly string[]; readonly state: S },
  ): Promise<void>;
  zones?(): Promise<readonly string[]>;
}

/** For APIs with record sets: each read and write of a name runs exclusively. */
export function createValueSetClient<Z, S>(
  api: ValueSetApi<Z, S>,
  { inTurn }: Pick<DnsParts, "inTurn">,
): DnsProviderClient {
  const { zones } = api;
  const change = (fqdn: string, next: (values: readonly string[]) => readonly string[]) =>
    inTurn(fqdn, async () => {
      const zone = await api.zoneOf(fqdn);
      const { values, state } = await api.read(zone, fqdn);
      const wanted = next(values);
      if (wanted.length !== values.length) await api.write(zone, fqdn, { values: wanted, state });
    });
  const isText = (text: string) => (value: string) => unquoteTxt(value) === text;
  return {
    present: ({ fqdn, value }) =>
      change(fqdn, (values) =>
        values.some(isText(value)) ? values : [...values, quoteTxt(value)],
      ),
    cleanUp: ({ fqdn, value }) =>
      change(fqdn, (values) => values.filter((each) => !isText(value)(each))),
    ...(zones === undefined ? {} : { zones: () => zones.call(api) }),
  };
}

/** The zone of a name: calls `find` for each candidate, longest first; `find` returns null when there is no such zone. */
export async function findZone<Z>(
  fqdn: string,
  { zones, service }: { readonly zones: readonly string[]; readonly service: string },
  find: (name: string) => Promise<Z | null>,
): Promise<Z> {
  const configured = longestZone(zones, fqdn);
  for (const name of configured === null ? suffixesOf(fqdn) : [configured]) {
    const zone = await find(name);
    if (zone !== null) return zone;
  }
  throw noZone(service, fqdn);
}

export const noZone = (service: string, fqdn: string) =>
  new DnsError(`${service} has no zone for ${fqdn} that these credentials can write to`);

/** The zone of a name, for APIs that list all zones. */
export async function longestOf(
  fqdn: string,
  from: {
    readonly zones: () => Promise<readonly string[]>;
    readonly configured: readonly string[];
    readonly service: string;
  },
): Promise<string> {
  const zone = longestZone(from.configured, fqdn) ?? longestZone(await from.zones(), fqdn);
  if (zone === null) throw noZone(from.service, fqdn);
  return zone;
}
