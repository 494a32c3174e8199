// Export and import of the configuration: plain with masked secrets, or complete and encrypted with a passphrase; knows no HTTP.
import type { Clock } from "../../clock.ts";
import { encryptUnder } from "../../crypto/passphrase-box.ts";
import type { SecretBox } from "../../crypto/secret-box.ts";
import { decode } from "../../model/decode.ts";
import { ApiError, invalid } from "../../model/error.ts";
import {
  type AccessParts,
  accessParts,
  DOCUMENT_FORMAT,
  type EncryptedDocument,
  type ImportMode,
  personalCollections,
} from "../../model/export-document.ts";
import type { Fact } from "../../model/fact.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { isAdminPart, type Part } from "../../control/admin-parts.ts";
import { completeApplications } from "./applications.ts";
import type { AuditSink } from "../../control/audit-entry.ts";
import type { AdminToken, AdminTokenStore } from "../../auth/admin-token.ts";
import type { TotpStore } from "../../auth/totp.ts";
import { type Document, isDocument } from "../../control/body.ts";
import type { Changes } from "../../control/change.ts";
import { type Actor, includesRole, type Principal } from "../../control/principal.ts";
import type { PluginCatalogue } from "../../snapshot/plugin-config.ts";
import { Pace } from "../../pace.ts";
import type { Draft } from "../../control/draft.ts";
import {
  disableBusyStreams,
  type DisabledStream,
  refusedStreamIn,
} from "../../control/free-ports.ts";
import { differenceSteps, type ObjectDifference } from "../../control/differences.ts";
import type { ReportEntry } from "../report.ts";
import { documentSteps } from "./document.ts";
import { textSteps } from "./document-text.ts";
import { DocumentReader, type OpenDocument } from "./document-reader.ts";
import { createImportNormalizers } from "./import-normalizers.ts";
import { applySteps } from "./plan.ts";
import { checkPassphrase, type ReadTask } from "./reading.ts";
import { maskSecrets, openSecrets } from "./secret-material.ts";
import { atPosition, pathIn, type ParseJson } from "./source.ts";

export interface TransferOptions {
  readonly changes: Changes;
  readonly clock: Clock;
  readonly box: SecretBox;
  /** All plugins that the gateway has. */
  readonly plugins: PluginCatalogue;
  readonly audit: AuditSink;
  readonly totpStore: TotpStore;
  readonly tokenStore: AdminTokenStore;
  readonly adminToken: AdminToken;
  /** Entry file of the thread that reads large configuration files. Default: this thread reads them. */
  readonly importerUrl?: URL;
}

export interface ImportOptions {
  readonly by: Actor;
  readonly mode: ImportMode;
  readonly dryRun: boolean;
  /** As in `ChangeRequest`. */
  readonly force?: boolean;
  /**
   * Whether the file was converted from another program: applications adopt the objects of their names, accounts whose terms an
   * admin agreed to stay agreed, and stream routes whose port is in use are disabled. Default: whether the source has a report.
   */
  readonly isConverted?: boolean;
}

export interface Imported {
  readonly changes: readonly ObjectDifference[];
  readonly revision: number;
  readonly warnings: readonly string[];
}

export interface ImportedFile extends Imported {
  /** What a converted file cannot have on this machine. */
  readonly report: readonly ReportEntry[];
}

/** Longer work gives the event loop a turn. */
const SLICE = { objects: Number.POSITIVE_INFINITY, ms: 20 } as const;

export class Transfer {
  readonly #options: TransferOptions;
  readonly #reader: DocumentReader;

  constructor(options: TransferOptions) {
    this.#options = options;
    this.#reader = new DocumentReader({ ...options, url: options.importerUrl ?? null });
  }

  /** Without users and tokens, secrets masked; for roles below admin without the parts that only admins see. */
  exportPlain({ role }: Pick<Principal, "role">, program: string): Promise<Document> {
    return new Pace(SLICE).run(this.#plainOf(this.#options.changes.config, { role, program }));
  }

  /** The same without defaults, times and what an import makes again, with names for ids. */
  async exportMinimal({ role }: Pick<Principal, "role">, program: string): Promise<Document> {
    const { plugins, changes } = this.#options;
    const { config } = changes;
    const { minimalSteps } = await import("./minimal.ts");
    const pace = new Pace(SLICE);
    const plain = await pace.run(this.#plainOf(config, { role, program }));
    return await pace.run(minimalSteps(plain, { config, plugins }));
  }

  #plainOf(
    config: GatewayConfig,
    { role, program }: Pick<Principal, "role"> & { program: string },
  ) {
    const left: readonly string[] = personalCollections;
    const isShown = (part: Part) =>
      !left.includes(part) && (includesRole(role, "admin") || !isAdminPart(part));
    return documentSteps(config, { program, isShown, convert: maskSecrets });
  }

  /** The complete configuration including secrets, encrypted with the passphrase. Recorded in the audit log. */
  async exportWhole(
    by: Principal,
    { program, passphrase }: { readonly program: string; readonly passphrase: string | null },
  ): Promise<EncryptedDocument> {
    if (!includesRole(by.role, "admin")) throw new ApiError(403, "the role admin is required");
    const checked = checkPassphrase(passphrase);
    const { changes, box, audit } = this.#options;
    const contents = {
      program,
      isShown: () => true,
      convert: (value: unknown) => openSecrets(value, box),
    };
    const pace = new Pace(SLICE);
    const { config } = changes;
    const document = await pace.run(documentSteps(config, contents));
    const whole = { ...document, ...this.#accessParts() };
    const { actor, method, address } = by;
    audit.record({
      actor,
      method,
      address,
      action: "export",
      kind: "configuration",
      object_id: null,
      object_name: null,
      result: "ok",
      revision: changes.revision,
      detail: null,
    });
    const encrypted = await encryptUnder(checked, await pace.run(textSteps(whole, "json")));
    return { format: DOCUMENT_FORMAT, program, encrypted };
  }

  /** The JSON Schema of configuration files. */
  async schema(): Promise<object> {
    const { documentSchema } = await import("../document-schema.ts");
    return documentSchema(this.#options.plugins);
  }

  /** Reads a file to import; throws a 400 for an invalid one. */
  read(task: ReadTask, parseJson: ParseJson): Promise<OpenDocument> {
    return this.#reader.read(task, parseJson);
  }

  /** Applies a configuration file as one atomic change. */
  async import(source: OpenDocument, options: ImportOptions): Promise<ImportedFile> {
    const { value, wasEncrypted } = source;
    if (options.isConverted ?? source.report !== null)
      return await this.#importConverted(source, options);
    if (!wasEncrypted) return await this.#run(source, options);
    if (!isDocument(value))
      throw invalid("", "the encrypted configuration file must contain an object");
    const { totp, admin_token, ...document } = value;
    const access = decode(accessParts, { totp: totp ?? [], admin_token: admin_token ?? null });
    return await this.#run({ ...source, value: document }, options, { access });
  }

  /** Again without a stream route that cannot listen: another program may just have taken its port. */
  async #importConverted(source: OpenDocument, options: ImportOptions): Promise<ImportedFile> {
    const refused = new Map<string, string>();
    for (;;) {
      try {
        return await this.#run(source, options, { refused });
      } catch (error) {
        const stream = error instanceof ApiError ? refusedStreamIn(error.message) : null;
        if (stream === null || refused.has(stream.name)) throw error;
        refused.set(stream.name, stream.problem);
      }
    }
  }

  async #run(
    source: OpenDocument,
    { by, mode, dryRun, force = false }: ImportOptions,
    { access = null, refused = null }: RunOptions = {},
  ): Promise<ImportedFile> {
    const { changes, box, plugins, clock } = this.#options;
    const normalizers = createImportNormalizers(box, plugins);
    const { value: document, decoded } = source;
    let facts: readonly Fact[] = [];
    let report: readonly ReportEntry[] = [];
    try {
      const { value, ...served } = await changes.run({
        by,
        dryRun,
        force,
        mutate: async (draft, pace) => {
          const steps = applySteps(document, draft, { mode, box, normalizers, decoded });
          const { renamed } = await pace.run(steps);
          if (isDocument(document))
            completeApplications(document, draft, { clock, isConverted: refused !== null });
          if (refused !== null) {
            keepAgreements(draft);
            report = (await disableBusyStreams(draft, refused)).map(toEntry);
          }
          if (access !== null) facts = this.#accessFacts({ access, renamed, mode }, draft.config);
          const changed = { before: draft.base, after: draft.config, change: draft.change() };
          const all = await pace.run(differenceSteps(changed, { withAdminParts: true }));
          draft.summary = `import (${mode}): ${countsOf(all)}`;
          return all;
        },
        facts: () => facts,
      });
      if (!dryRun && access !== null) this.#options.adminToken.reload();
      return { changes: value, report, ...served };
    } catch (error) {
      const path = error instanceof ApiError ? pathIn(error) : null;
      throw path === null ? error : atPosition(error as ApiError, await source.positionOf(path));
    }
  }

  #accessParts(): AccessParts {
    const { totpStore, tokenStore, box } = this.#options;
    const rows = totpStore.all().toSorted((a, b) => (a.user_id < b.user_id ? -1 : 1));
    const stored = tokenStore.loadAdminToken();
    return {
      totp: rows.map(({ user_id, sealed_key, confirmed, last_step, recovery_hashes }) => ({
        user_id,
        key: { plain: box.open(sealed_key) },
        confirmed,
        last_step,
        recovery_hashes: [...recovery_hashes],
      })),
      admin_token: stored && { token_hash: stored.token_hash, created_at: stored.created_at },
    };
  }

  /** Second factors of users in the file, and the admin token. */
  #accessFacts(
    { access, renamed, mode }: AccessImport,
    { users }: Pick<GatewayConfig, "users">,
  ): Fact[] {
    const { totpStore, box } = this.#options;
    const given = new Map(access.totp.map((row) => [renamed.get(row.user_id) ?? row.user_id, row]));
    const facts: Fact[] = [];
    for (const [user_id, { key, ...row }] of given) {
      const record = { ...row, user_id, sealed_key: box.seal(key.plain) };
      if (users.has(user_id)) facts.push({ kind: "second_factor", user_id, record });
    }
    if (mode === "replace")
      for (const { user_id } of totpStore.all())
        if (!given.has(user_id)) facts.push({ kind: "second_factor", user_id, record: null });
    if (mode === "replace" || access.admin_token !== null)
      facts.push({ kind: "admin_token", token: access.admin_token });
    return facts;
  }
}

interface RunOptions {
  readonly access?: AccessParts | null;
  /** Of a converted file: problems of stream routes that could not listen, by name. Null: it is a file of the gateway. */
  readonly refused?: ReadonlyMap<string, string> | null;
}

/** The file does not know that an admin has agreed since. */
function keepAgreements(draft: Draft): void {
  for (const account of [...draft.config.acme_accounts.values()])
    if (draft.base.acme_accounts.get(account.id)?.terms_agreed === true && !account.terms_agreed)
      draft.put("acme_accounts", { ...account, terms_agreed: true });
}

const toEntry = ({ name, problem }: DisabledStream): ReportEntry => ({
  level: "changed",
  what: `stream route "${name}"`,
  why: `is disabled, because of ${problem}: enable it when the port is free`,
});

interface AccessImport {
  readonly access: AccessParts;
  readonly renamed: ReadonlyMap<string, string>;
  readonly mode: ImportMode;
}

function countsOf(all: readonly ObjectDifference[]): string {
  const count = (action: string) => all.filter((entry) => entry.action === action).length;
  return `${count("create")} created, ${count("update")} updated, ${count("delete")} deleted`;
}
