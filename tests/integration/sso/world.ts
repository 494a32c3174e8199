// Single sign-on with the real control plane, sessions in real SQLite and a provider that can lie; only the workers are missing.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sessions } from "../../../src/auth/sessions.ts";
import { type Finished, type Started, SingleSignOn } from "../../../src/auth/sso/single-sign-on.ts";
import { SecretBox } from "../../../src/crypto/secret-box.ts";
import { ManagementCookies } from "../../../src/http/management-cookies.ts";
import { createLog } from "../../../src/log.ts";
import type { AuditEntry } from "../../../src/model/audit-entry.ts";
import { decode } from "../../../src/model/decode.ts";
import type { GatewayConfig } from "../../../src/model/gateway-config.ts";
import { settingsInput } from "../../../src/model/settings.ts";
import { type User, userRecord } from "../../../src/model/user.ts";
import { SessionTable } from "../../../src/store/sessions.ts";
import { Store } from "../../../src/store/store.ts";
import { at, configOf, controlPlane, options } from "../../unit/control/fixture.ts";
import { clientId, clientSecret, type Lie, LyingProvider } from "./lying-provider.ts";

export interface Scene {
  /** Fields of the settings of single sign-on. */
  sso?: object;
  users?: User[];
  publicUrl?: string;
  timeoutMs?: number;
}

export const user = (email: string, fields: object = {}): User => ({
  id: Bun.randomUUIDv7(),
  created_at: at,
  updated_at: at,
  ...decode(userRecord, { email, name: email, role: "admin", ...fields }),
});

/** One administrator whom the provider does not know. */
export const root = user("root@example.com");

/** Its last eight digits are in the names of cookies. */
const INSTANCE = "01a1fd84-2dbf-73d8-ab7a-d2f60badcafe";
const visit = { origin: "http://127.0.0.1:9080", address: "192.0.2.1", userAgent: "test" };

export async function createWorld(scene: Scene = {}): Promise<World> {
  const provider = await LyingProvider.start();
  const world = new World(provider, scene);
  const { issuer } = provider;
  const settings = { enabled: true, issuer, client_id: clientId, client_secret: clientSecret };
  await world.sso.settings.replace({ ...settings, ...scene.sso }, options);
  return world;
}

export class World {
  readonly provider: LyingProvider;
  readonly sso: SingleSignOn;
  readonly sessions: Sessions;
  readonly audit: AuditEntry[] = [];
  readonly log: string[] = [];
  readonly plane: ReturnType<typeof controlPlane>;
  now = Date.now();
  readonly #store: Store;
  readonly #directory = mkdtempSync(join(tmpdir(), "sluice-sso-"));

  constructor(provider: LyingProvider, { users = [root], publicUrl, timeoutMs = 5000 }: Scene) {
    this.provider = provider;
    provider.now = () => this.now;
    const config: GatewayConfig = {
      ...configOf({}),
      users: new Map(users.map((one) => [one.id, one])),
      settings: { ...decode(settingsInput, { public_url: publicUrl ?? null }), updated_at: at },
    };
    const clock = { now: () => this.now };
    const log = createLog({
      level: "debug",
      format: "json",
      sink: (line) => void this.log.push(line),
    });
    this.plane = controlPlane(config);
    this.#store = Store.open({ dataDir: this.#directory, log });
    this.sessions = new Sessions({
      store: this.#store.with((context) => new SessionTable(context)),
      changes: this.plane.control.changes,
      clock,
      log,
    });
    this.sso = new SingleSignOn({
      cookies: new ManagementCookies(INSTANCE, (value) => this.sessions.isLive(value)),
      changes: this.plane.control.changes,
      sessions: this.sessions,
      clock,
      log,
      box: new SecretBox(new Uint8Array(32)),
      audit: { record: (entry) => void this.audit.push({ at, ...entry }) },
      limits: { timeoutMs, maxBytes: 1_048_576 },
    });
  }

  get users(): readonly User[] {
    return [...this.plane.control.changes.config.users.values()];
  }

  find(email: string): User {
    const found = this.users.find((one) => one.email === email);
    if (found === undefined) throw new Error(`there is no user ${email}`);
    return found;
  }

  start(redirect: string | null = null): Promise<Started> {
    return this.sso.start({ redirect, ...visit });
  }

  /** The start of a sign-in that is expected to lead to the provider. */
  async begin(redirect: string | null = null): Promise<{ url: string; cookies: string }> {
    const started = await this.start(redirect);
    if ("error" in started) throw new Error(started.error);
    return { url: started.url, cookies: started.cookie.split(";")[0] ?? "" };
  }

  comeBack(parameters: URLSearchParams, cookies: string | null): Promise<Finished> {
    return this.sso.finish({ parameters, cookies, ...visit });
  }

  /** A whole sign-in. */
  async signIn(lie: Lie = {}): Promise<Finished> {
    const { url, cookies } = await this.begin();
    this.provider.lie = lie;
    return await this.comeBack(this.provider.agree(url), cookies);
  }

  /** The word that a sign-in ends with; `ok` when it succeeds. */
  async outcome(lie: Lie = {}): Promise<string> {
    const finished = await this.signIn(lie);
    return "error" in finished ? finished.error : "ok";
  }

  async stop(): Promise<void> {
    await this.provider.stop();
    this.#store.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
