// Where addresses are, by MaxMind databases; knows no request.
import type { Settings } from "../../model/settings.ts";
import type { LogLine } from "../data-plane.ts";

export interface Geo {
  /** ISO 3166-1 alpha-2; null: unknown. */
  readonly country: (address: string) => string | null;
  readonly asn: (address: string) => number | null;
  /** Opens the databases that the settings name. */
  configure(settings: Settings["geoip"]): void;
}

export function createGeo(_log: LogLine): Geo {
  return { country: () => null, asn: () => null, configure() {} };
}
