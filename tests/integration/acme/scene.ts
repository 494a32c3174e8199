// The control plane on a real database with a test clock and a scripted CA; without workers.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileStored } from "../../../src/control/stored.ts";
import { type ControlPlane, createControlPlane } from "../../../src/control-plane.ts";
import { fieldChecks } from "../../../src/control/field-checks.ts";
import { local } from "../../../src/control/principal.ts";
import { SecretBox } from "../../../src/crypto/secret-box.ts";
import { createLog } from "../../../src/log.ts";
import { catalogueOf } from "../../../src/pdk/catalogue.ts";
import { plugins } from "../../support/plugins.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { AcmeStateTable } from "../../../src/store/acme.ts";
import { CredentialUseTable } from "../../../src/store/credentials.ts";
import { emptyConfiguration } from "../../../src/store/first-configuration.ts";
import { LocalCaRow } from "../../../src/store/local-ca.ts";
import { RevisionTable } from "../../../src/store/revisions.ts";
import { SessionTable } from "../../../src/store/sessions.ts";
import { Store } from "../../../src/store/store.ts";
import { TokenTable } from "../../../src/store/tokens.ts";
import { TotpTable } from "../../../src/store/totp.ts";
import type { Challenges } from "../../../src/snapshot/message.ts";
import { eventually } from "../../support/poll.ts";
import { ScriptedAuthority } from "../../support/scripted-authority.ts";

export const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;

/** How things are written here. */
export const options = {
  by: local,
  dryRun: false,
  conditions: { match: null, onlyIfAbsent: false },
};

export class AcmeWorld {
  /** The present, which only tests move. */
  now = Date.now();
  readonly authority: ScriptedAuthority;
  /** The challenges that workers would serve. */
  readonly shown: Challenges[] = [];
  readonly events: { kind: string; data: Record<string, unknown> }[] = [];
  control: ControlPlane;
  readonly #dataDir = mkdtempSync(join(tmpdir(), "sluice-acme-"));
  #store: Store;
  #cut: () => void = () => {};

  private constructor(authority: ScriptedAuthority) {
    this.authority = authority;
    [this.#store, this.control] = this.#open();
  }

  static async start(): Promise<AcmeWorld> {
    const time = { now: () => Date.now() };
    const authority = await ScriptedAuthority.start(() => time.now());
    const world = new AcmeWorld(authority);
    time.now = () => world.now;
    await world.addAccount("scripted");
    world.control.acme.engine.start();
    return world;
  }

  addAccount(name: string, fields: object = {}) {
    const { directoryUrl: directory_url, trusted: ca_certificates } = this.authority;
    const body = { name, directory_url, ca_certificates, terms_agreed: true, ...fields };
    return this.control.acmeAccounts.create(body, options);
  }

  order(name: string, fields: object = {}) {
    const body = { name, source: "acme", domains: [`${name}.test`], ...fields };
    return this.control.certificates.create(body, options);
  }

  find(name: string) {
    return this.control.certificates.get(name).view;
  }

  /** Waits until nothing is being ordered and the certificate has the status. */
  becomes(name: string, status: string) {
    return eventually(() => {
      const view = this.find(name);
      if (view.status === status) return view;
      throw new Error(`${name} is ${view.status}: ${view.last_error}`);
    });
  }

  /** Advances the clock and runs the engine. */
  pass(ms: number): void {
    this.now += ms;
    this.control.acme.engine.tick();
  }

  /** As a new process on the same data directory. */
  async restart(): Promise<void> {
    await this.#close();
    [this.#store, this.control] = this.#open();
    this.control.acme.engine.start();
  }

  async stop(): Promise<void> {
    await this.#close();
    await this.authority.stop();
    rmSync(this.#dataDir, { recursive: true, force: true });
  }

  async #close(): Promise<void> {
    this.#cut();
    await this.control.acme.engine.stop();
    this.#store.close();
  }

  #open(): [Store, ControlPlane] {
    const log = createLog({ level: "error", format: "json", sink: () => {} });
    const store = Store.open({ dataDir: this.#dataDir, log });
    const at = new Date(this.now).toISOString();
    if (store.isEmpty())
      store.begin(emptyConfiguration(at), { at, actor: "test", summary: "first start" });
    const box = new SecretBox(new Uint8Array(32));
    const context = () => ({
      tls: { cert: "", key: "" },
      checks: fieldChecks,
      plugins: catalogueOf(plugins),
      managementAddresses: [],
      openSealed: (sealed: string) => box.open(sealed),
    });
    const control = createControlPlane({
      instanceId: "test",
      store,
      box,
      log,
      context,
      plugins: catalogueOf(plugins),
      auditStore: store.audit,
      totpStore: store.with((tables) => new TotpTable(tables)),
      sessionStore: store.with((tables) => new SessionTable(tables)),
      tokenStore: store.with((tables) => new TokenTable(tables)),
      revisionStore: store.with((tables) => new RevisionTable(tables)),
      localCaStore: store.with((tables) => new LocalCaRow(tables)),
      credentialUseStore: store.with((tables) => new CredentialUseTable(tables)),
      acme: {
        store: store.with((tables) => new AcmeStateTable(tables)),
        show: (challenges) => {
          this.shown.push(challenges);
          return Promise.resolve();
        },
      },
      rollout: {
        prepare: () => Promise.resolve([]),
        activate: () => Promise.resolve(),
        discard: () => Promise.resolve(),
        status: () => ({ workers: 0, ready: 0, revision: 0 }),
      },
      targetBoard: TargetBoard.create(0),
      clock: { now: () => this.now },
      current: compileStored(store.load(), context()),
    });
    const kinds = ["acme", "certificate"] as const;
    const subscription = control.events.subscribe(
      { role: "viewer", kinds, lastEventId: null },
      () => {
        for (let event = subscription.next(); event !== null; event = subscription.next())
          this.events.push({ kind: event.kind, data: JSON.parse(event.data) });
      },
    );
    this.#cut = () => subscription.close();
    return [store, control];
  }
}
