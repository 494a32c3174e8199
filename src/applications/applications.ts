// Applications: each write creates, updates or deletes all parts in one change. Knows no HTTP.
import type { Clock } from "../clock.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import type { Application, ApplicationInput } from "../model/application.ts";
import type { Certificate } from "../model/certificate.ts";
import { filled } from "../model/dependent-defaults.ts";
import { markOf } from "../model/fields.ts";
import type { CertificateView } from "../acme/certificates.ts";
import type { LocalCa } from "../acme/local-ca.ts";
import type { Changes } from "../control/change.ts";
import type { Draft } from "../control/draft.ts";
import type { TargetStates } from "../control/health/target-states.ts";
import type { QueryEntry } from "../control/list-filter.ts";
import {
  type FieldsOf,
  type Read,
  type Removed,
  Resource,
  type ResourceKind,
  type WriteOptions,
  type Written,
} from "../control/resource.ts";
import { objectDifferences } from "../control/differences.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { CompleteConfig } from "./drift.ts";
import { planHttps } from "./https-plan.ts";
import { completePatch, decodeApplication, requireOther } from "./input.ts";
import { objectOf } from "./parts.ts";
import { reconcile, type ReconcileOptions, type Sign } from "./reconcile.ts";
import { withSigning } from "./signing.ts";
import { type ApplicationView, contentOf, createApplicationViewer, inputOf } from "./view.ts";
import type { Fields } from "./planned-part.ts";

export interface ApplicationsOptions {
  readonly changes: Changes;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly localCa: LocalCa;
  readonly states: TargetStates;
  readonly certificateView: (certificate: Certificate) => CertificateView;
  readonly plugins: PluginCatalogue;
}

export interface ApplicationWriteOptions extends WriteOptions {
  /** Adopt existing objects, and accept manual changes of own ones. */
  readonly adopt: boolean;
  /** Revert manual changes and deletions. */
  readonly force: boolean;
}

/** An application that a source describes. */
export interface ManagedApplication {
  readonly id: string;
  /** The source. */
  readonly managed_by: string;
  readonly document: unknown;
}

const completeWith =
  (plugins: PluginCatalogue): CompleteConfig =>
  (name, config) => {
    const schema = plugins.get(name)?.config;
    return schema === undefined ? config : (filled(schema, config) as Fields);
  };

type Kind = ResourceKind<"applications", ApplicationView>;
type Writer = Resource<"applications", ApplicationView>;
type How = Pick<ReconcileOptions, "adopt" | "force" | "sign">;

export class Applications {
  readonly #options: ApplicationsOptions;
  readonly #reader: Writer;

  constructor(options: ApplicationsOptions) {
    this.#options = options;
    const kind = this.#kind({ adopt: false, force: false, sign: () => null }, () => {});
    this.#reader = new Resource(options.changes, kind);
  }

  list(query: readonly QueryEntry[]): Read<readonly ApplicationView[]> {
    return this.#reader.list(query);
  }

  get(key: string): Read<ApplicationView> {
    return this.#reader.get(key);
  }

  create(body: unknown, options: ApplicationWriteOptions): Promise<Written<ApplicationView>> {
    return this.#write(options, (writer) => writer.create(body, options));
  }

  replace(
    key: string,
    body: unknown,
    options: ApplicationWriteOptions,
  ): Promise<Written<ApplicationView>> {
    return this.#write(options, (writer) => writer.replace(key, body, options));
  }

  patch(
    key: string,
    patch: unknown,
    options: ApplicationWriteOptions,
  ): Promise<Written<ApplicationView>> {
    const whole = completePatch(patch);
    return this.#write(options, (writer) => writer.patch(key, whole, options));
  }

  /** Deletes its objects, too; a 409 names other objects that refer to them, unless `cascade`. */
  remove(key: string, options: WriteOptions & { readonly cascade: boolean }): Promise<Removed> {
    return this.#reader.remove(key, options);
  }

  /**
   * Writes an application of a source into a draft, as the source describes it, and reverts what others did to its parts. Throws
   * an ApiError with a path in `document`.
   */
  putManaged(draft: Draft, { id, managed_by, document }: ManagedApplication, sign: Sign): void {
    const old = draft.config.applications.get(id) ?? null;
    const input = decodeApplication(document, draft.config);
    const how = { adopt: false, force: true, sign, draft, managed_by };
    const fields = { ...this.#fieldsOf(input, old, how), managed_by };
    const { created_at = draft.stamp(), updated_at = created_at } = old ?? {};
    const next: Application = { id, ...fields, created_at, updated_at };
    if (old !== null && Bun.deepEquals(next, old)) return;
    draft.put("applications", old === null ? next : { ...next, updated_at: draft.stamp() });
  }

  /** Runs a change that may need self-signed certificates. */
  signed<T>(run: (sign: Sign) => Promise<T>): Promise<T> {
    return withSigning(this.#options, run, { dryRun: false });
  }

  async #write(
    options: ApplicationWriteOptions,
    work: (writer: Writer) => Promise<Written<ApplicationView>>,
  ): Promise<Written<ApplicationView>> {
    const { adopt, force, dryRun } = options;
    const run = async (sign: Sign): Promise<Written<ApplicationView>> => {
      let seen: Draft | null = null;
      const kind = this.#kind({ adopt, force, sign }, (draft) => {
        seen = draft;
      });
      const written = await work(new Resource(this.#options.changes, kind));
      const { view } = written;
      const warnings = [...written.warnings, ...view.warnings];
      const draft = seen as Draft | null;
      if (!dryRun || draft === null) return { ...written, warnings };
      const changed = { before: draft.base, after: draft.config, change: draft.change() };
      const changes = objectDifferences(changed, { withAdminParts: false });
      return { ...written, warnings, view: { ...view, changes } };
    };
    return await withSigning(this.#options, run, { dryRun });
  }

  #kind(how: How, watch: (draft: Draft) => void): Kind {
    const { states, certificateView, plugins } = this.#options;
    const viewers = {
      target: states.view,
      certificate: certificateView,
      completeConfig: completeWith(plugins),
    };
    return {
      collection: "applications",
      decode: (document, draft, old) => {
        watch(draft);
        const input = decodeApplication(document, draft.config);
        requireOther(input, old, draft.config);
        return { fields: this.#fieldsOf(input, old, { ...how, draft }) };
      },
      sendable: inputOf,
      viewer: (config) => createApplicationViewer(config, viewers),
      content: contentOf,
    };
  }

  #fieldsOf(
    input: ApplicationInput,
    old: Application | null,
    { draft, managed_by, ...how }: How & { readonly draft: Draft; readonly managed_by?: string },
  ): FieldsOf<"applications"> {
    const parts = old?.parts ?? [];
    const { localCa } = this.#options;
    if (input.https.mode === "local_ca") localCa.requirePermitted(input.domains);
    const ordered = objectOf(
      draft.config,
      { parts },
      { role: "certificate", collection: "certificates" },
    );
    const https_state = planHttps(input, {
      config: draft.config,
      now: this.#options.clock.now(),
      ordered,
      previous: old?.https_state ?? null,
      isPermitted: (name) => localCa.permits(name),
    });
    const application = { ...input, https_state };
    const planned = { ...application, ...markOf({ managed_by }) };
    return {
      ...application,
      parts: reconcile({
        ...how,
        accept: how.adopt,
        draft,
        application: planned,
        parts,
        automatic: false,
      }),
    };
  }
}
