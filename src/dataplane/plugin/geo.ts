// Looks addresses up in the MaxMind databases of the settings, and reloads changed files; knows no request.
import * as files from "node:fs/promises";
import type { Settings } from "../../model/settings.ts";
import { type GeoDatabase, type GeoKind, openGeoDatabase } from "../../net/geo-database.ts";
import type { LogLine } from "../data-plane.ts";

type GeoSettings = Settings["geoip"];

export interface Geo {
  /** ISO 3166-1 alpha-2; null: unknown. */
  readonly country: (address: string) => string | null;
  readonly asn: (address: string) => number | null;
  /** Opens the databases of the settings ahead of `configure`. */
  prepare(settings: GeoSettings): Promise<void>;
  /** Closes what `prepare` has opened. */
  discard(): void;
  /** Uses these databases from now on, and opens those that are not open; until then lookups return null. */
  configure(settings: GeoSettings): void;
}

/** How often a file is checked for changes. */
const POLL_MS = 60_000;

export function createGeo(log: LogLine, { pollMs = POLL_MS } = {}): Geo {
  const countries = new NamedDatabase("country", log);
  const networks = new NamedDatabase("asn", log);
  const poll = () => {
    void countries.refresh();
    void networks.refresh();
  };
  let timer: Timer | null = null;
  return {
    country: (address) => countries.database?.country(address) ?? null,
    asn: (address) => networks.database?.asn(address) ?? null,
    prepare: async ({ country_db, asn_db }) => {
      await Promise.all([countries.prepare(country_db), networks.prepare(asn_db)]);
    },
    discard() {
      countries.forget();
      networks.forget();
    },
    configure({ country_db, asn_db }) {
      countries.use(country_db);
      networks.use(asn_db);
      if (timer !== null) clearInterval(timer);
      timer = country_db === null && asn_db === null ? null : setInterval(poll, pollMs);
      // The timer alone must not keep the thread alive.
      timer?.unref();
    },
  };
}

/** The database of one setting. */
class NamedDatabase {
  readonly #kind: GeoKind;
  readonly #log: LogLine;
  #live: WatchedFile | null = null;
  /** Opened for a version of the configuration that may come into service. */
  #next: WatchedFile | null = null;

  constructor(kind: GeoKind, log: LogLine) {
    this.#kind = kind;
    this.#log = log;
  }

  get database(): GeoDatabase | null {
    return this.#live?.database ?? null;
  }

  async prepare(path: string | null): Promise<void> {
    if (path === null || path === this.#live?.path) return;
    this.#next = new WatchedFile(path, this.#kind, this.#log);
    await this.#next.refresh();
  }

  forget(): void {
    this.#next = null;
  }

  use(path: string | null): void {
    const next = this.#next;
    this.#next = null;
    if (path === null) this.#live = null;
    else if (next?.path === path) this.#live = next;
    else {
      if (path !== this.#live?.path) this.#live = new WatchedFile(path, this.#kind, this.#log);
      // Saving the settings also reloads a changed file.
      void this.refresh();
    }
  }

  async refresh(): Promise<void> {
    await this.#live?.refresh();
  }
}

class WatchedFile {
  readonly path: string;
  readonly #kind: GeoKind;
  readonly #log: LogLine;
  /** Opened last: stays in use when the file is gone or broken, because it may be being written. */
  database: GeoDatabase | null = null;
  #stamp: string | null = null;
  #reported: string | null = null;
  #isBusy = false;

  constructor(path: string, kind: GeoKind, log: LogLine) {
    this.path = path;
    this.#kind = kind;
    this.#log = log;
  }

  /** Opens the file if it has changed. */
  async refresh(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    const stamp = await stampOf(this.path);
    if (stamp === null || stamp !== this.#stamp) await this.#open(stamp);
    this.#isBusy = false;
  }

  async #open(stamp: string | null): Promise<void> {
    try {
      this.database = await openGeoDatabase(this.path, this.#kind, files);
      this.#reported = null;
    } catch (error) {
      this.#report((error as Error).message);
    }
    this.#stamp = stamp;
  }

  /** Logs each error once, not every minute. */
  #report(message: string): void {
    if (message === this.#reported) return;
    this.#reported = message;
    const consequence =
      this.database === null ? "lookups return nothing" : "the previous database stays in use";
    this.#log("warn", "cannot open a GeoIP database", {
      setting: `geoip.${this.#kind}_db`,
      path: this.path,
      error: message,
      consequence,
    });
  }
}

/** Changes when the file does; null: there is no file. */
async function stampOf(path: string): Promise<string | null> {
  const found = await files.stat(path).catch(() => null);
  return found === null ? null : `${found.ino} ${found.size} ${found.mtimeMs}`;
}
