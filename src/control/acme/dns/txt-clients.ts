// Two manners of keeping TXT records, to which most APIs come down: one record at a time, and all of a name at once. Knows no API.
import type { DnsParts } from "./definition.ts";
import { DnsError } from "./failure.ts";
import { longestZone, quoteTxt, suffixesOf, unquoteTxt } from "./names.ts";
import type { DnsProviderClient, TxtRecord } from "./provider.ts";

interface StoredTxt {
  readonly id: string;
  /** As the provider holds it, with or without quotes. */
  readonly value: string;
}

export interface RecordApi<Z> {
  zoneOf(fqdn: string): Promise<Z>;
  /** TXT records of this name. */
  list(zone: Z, fqdn: string): Promise<readonly StoredTxt[]>;
  add(zone: Z, record: TxtRecord): Promise<void>;
  /** One that is gone already is no error. */
  remove(zone: Z, id: string): Promise<void>;
  /** Called after records were changed. */
  finish?(zone: Z): Promise<void>;
  zones?(): Promise<readonly string[]>;
}

/** For APIs in which each record stands for itself. */
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
  /** What there is under the name now. */
  read(zone: Z, fqdn: string): Promise<{ readonly values: readonly string[]; readonly state: S }>;
  /** `values` are as they were read, and the new ones plain texts. */
  write(
    zone: Z,
    fqdn: string,
    next: { readonly values: readonly string[]; readonly state: S },
  ): Promise<void>;
  zones?(): Promise<readonly string[]>;
}

/** For APIs in which all texts of a name are written at once: whoever reads and writes does so alone. */
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

/** The zone that a name is in: `find` is asked for each candidate, longest first, and says null for what is none. */
export async function findZone<Z>(
  fqdn: string,
  { zones, service }: { readonly zones: readonly string[]; readonly service: string },
  find: (name: string) => Promise<Z | null>,
): Promise<Z> {
  const told = longestZone(zones, fqdn);
  for (const name of told === null ? suffixesOf(fqdn) : [told]) {
    const zone = await find(name);
    if (zone !== null) return zone;
  }
  throw noZone(service, fqdn);
}

export const noZone = (service: string, fqdn: string) =>
  new DnsError(`${service} has no zone for ${fqdn} that these credentials may write`);

/** The zone that a name is in, for APIs that list all zones at once. */
export async function longestOf(
  fqdn: string,
  from: {
    readonly zones: () => Promise<readonly string[]>;
    readonly told: readonly string[];
    readonly service: string;
  },
): Promise<string> {
  const zone = longestZone(from.told, fqdn) ?? longestZone(await from.zones(), fqdn);
  if (zone === null) throw noZone(from.service, fqdn);
  return zone;
}
