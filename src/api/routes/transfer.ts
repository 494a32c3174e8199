// Endpoints of export and import: the format of the configuration file; knows nothing of its content.
import type { ControlPlane } from "../../control-plane.ts";
import { importChoices, MAX_SOURCE_BYTES } from "../../import/programs.ts";
import { groupReport } from "../../import/report.ts";
import { textSteps } from "../../import/transfer/document-text.ts";
import { Pace } from "../../pace.ts";
import type { DocumentForm, ReadTask } from "../../import/transfer/reading.ts";
import { type DocumentType, documentTypes } from "../../import/transfer/source.ts";
import { ApiError } from "../../model/error.ts";
import { importModes } from "../../model/export-document.ts";
import {
  dryRunParameter,
  errorResponses,
  forceParameter,
  queryParameter,
  writeResponses,
} from "../description.ts";
import { SCHEMA_PATH } from "../access.ts";
import type { Call, Endpoint } from "../endpoint.ts";
import { parseJson, readBytes } from "../json-body.ts";
import { changeHeaders, flagOf, forcibleOptionsOf, requireKnownQuery } from "../write-options.ts";

const tags = ["Export and import"];
const PASSPHRASE = "x-passphrase";

/** Longer work gives the event loop a turn. */
const SLICE = { objects: Number.POSITIVE_INFINITY, ms: 20 } as const;

const MAX_IMPORT_BYTES = 67_108_864;
/** Twice what 64 MiB take over 10 Mbit/s. */
const IMPORT_DEADLINE_MS = 120_000;

/** `program` is the name of the writer in exports. */
export function transferEndpoints(
  { transfer, changes }: ControlPlane,
  program: string,
): Endpoint[] {
  return [
    {
      method: "GET",
      path: "/api/v1/export",
      takesBody: false,
      description: exportDescription,
      answer: async (call) => {
        requireKnownQuery(call, ["format", "secrets", "minimal"]);
        const type = wordOf(call, "format", documentTypes);
        const document = await exported(call, { transfer, program });
        return await toResponse(document, type, changes.config.settings.public_url);
      },
    },
    {
      method: "GET",
      path: SCHEMA_PATH,
      takesBody: false,
      description: {
        summary: "Get the JSON Schema of configuration files",
        description: "For editors: exports in YAML name it in their first line.",
        tags,
        responses: {
          "200": {
            description: "The schema",
            content: { "application/json": { schema: { type: "object" } } },
          },
          ...errorResponses([403, 500]),
        },
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await transfer.schema() };
      },
    },
    {
      method: "POST",
      path: "/api/v1/import",
      takesBody: true,
      readBody,
      description: importDescription,
      answer: async (call) => {
        const options = forcibleOptionsOf(call, ["mode", "from", "converted", "agree_acme_terms"]);
        const mode = wordOf(call, "mode", importModes);
        const source = await transfer.read(taskOf(call), parseJson);
        const isConverted = source.report !== null || flagOf(call, "converted");
        const { changes, revision, warnings, ...found } = await transfer.import(source, {
          by: call.principal,
          mode,
          dryRun: options.dryRun,
          force: options.force === true,
          isConverted,
        });
        const report = [...(source.report ?? []), ...found.report];
        const reports = isConverted
          ? { report, report_groups: groupReport(report), report_hosts: source.hosts }
          : {};
        return {
          body: { changes, ...reports },
          headers: changeHeaders(revision, options, warnings),
        };
      },
    },
  ];
}

async function exported(
  call: Call,
  { transfer, program }: Pick<ControlPlane, "transfer"> & { readonly program: string },
): Promise<object> {
  const passphrase = call.headers.get(PASSPHRASE);
  const isMinimal = flagOf(call, "minimal");
  if (!flagOf(call, "secrets"))
    return isMinimal
      ? await transfer.exportMinimal(call.principal, program)
      : await transfer.exportPlain(call.principal, program);
  if (isMinimal) throw new ApiError(400, "minimal: is not valid with secrets");
  return await transfer.exportWhole(call.principal, { program, passphrase });
}

/** A configuration file of Sluice, or another program's configuration. */
function taskOf(call: Call): ReadTask {
  const { bytes, type } = call.body as ReceivedDocument;
  const agreesTerms = flagOf(call, "agree_acme_terms");
  if (agreesTerms && type !== null)
    throw new ApiError(400, "agree_acme_terms: is only valid with from");
  const form: DocumentForm =
    type === null
      ? {
          from: wordOf(call, "from", importChoices),
          agreesTerms,
          contentType: call.headers.get("content-type") ?? "",
        }
      : { type };
  return { bytes, form, passphrase: call.headers.get(PASSPHRASE) };
}

/** Gateways with the same configuration export the same text. */
async function toResponse(
  document: object,
  type: DocumentType,
  publicUrl: string | null,
): Promise<Response> {
  const schema =
    publicUrl === null ? "sluice.schema.json" : `${publicUrl.replace(/\/$/, "")}${SCHEMA_PATH}`;
  const text = await new Pace(SLICE).run(textSteps(document, type));
  const head = type === "json" ? "" : `# yaml-language-server: $schema=${schema}\n`;
  return new Response(`${head}${text}`, {
    headers: {
      "content-type": `application/${type}; charset=utf-8`,
      "content-disposition": `attachment; filename="sluice.${type}"`,
    },
  });
}

interface ReceivedDocument {
  readonly bytes: Uint8Array;
  /** Null: another program's configuration, whatever its content type. */
  readonly type: DocumentType | null;
}

async function readBody(request: Request): Promise<ReceivedDocument> {
  const isForeign = new URL(request.url).searchParams.has("from");
  const type = isForeign ? null : typeOf(request.headers.get("content-type"));
  const maxBytes = isForeign ? MAX_SOURCE_BYTES : MAX_IMPORT_BYTES;
  return { bytes: await readBytes(request, { maxBytes, deadlineMs: IMPORT_DEADLINE_MS }), type };
}

function typeOf(contentType: string | null): DocumentType {
  const [type = ""] = (contentType ?? "").toLowerCase().split(";");
  if (/^application\/(json|[a-z0-9.-]+\+json)$/.test(type.trim())) return "json";
  if (/^(application|text)\/(x-)?yaml$/.test(type.trim())) return "yaml";
  throw new ApiError(415, "the body must be application/json or application/yaml");
}

/** One of the words; default: the first. */
function wordOf<T extends string>(call: Call, name: string, words: readonly [T, ...T[]]): T {
  const value = call.query.get(name);
  if (value === null) return words[0];
  const word = words.find((known) => known === value);
  if (word === undefined) throw new ApiError(400, `${name}: must be ${words.join(" or ")}`);
  return word;
}

const passphraseHeader = {
  name: "X-Passphrase",
  in: "header",
  required: false,
  description: "12 to 1024 printable ASCII characters that encrypt the export",
  schema: { type: "string" },
};

const ref = { $ref: "#/components/schemas/Document" };
const documentContent = {
  "application/json": { schema: ref },
  "application/yaml": { schema: ref },
};

const exportDescription = {
  summary: "Export the configuration",
  description:
    "A plain export has no users and tokens, and `***` for secrets; roles below admin get nothing that only admins may read." +
    " With `secrets=1`, for admins: the complete gateway, encrypted with X-Passphrase.",
  tags,
  parameters: [
    queryParameter("format", "`json` (default) or `yaml`"),
    queryParameter("secrets", "1: everything, encrypted"),
    queryParameter(
      "minimal",
      "1: without defaults, times and parts of applications, and with names for ids; not with `secrets`",
    ),
    passphraseHeader,
  ],
  responses: {
    "200": { description: "The configuration file", content: documentContent },
    ...errorResponses([400, 403, 500]),
  },
};

const importDescription = {
  summary: "Import a configuration",
  description:
    "Applies the whole file as one atomic change. Objects that the file does not name stay unchanged: `merge` adds and updates," +
    " `replace` also deletes objects that the lists in the file do not hold. `***` preserves the stored secret. Up to 64 MiB." +
    " With `from`, the body is the configuration of another program, up to 32 MiB of any type, and `report` holds the results." +
    " It may be one file, an archive (zip, tar or tar.gz) of a whole set-up, or a form (multipart/form-data) with several files," +
    " whose names may have folders: up to 10,000 entries of 64 MiB together, 16 folders deep, without links.",
  tags,
  parameters: [
    queryParameter("mode", "`merge` (default) or `replace`"),
    queryParameter(
      "from",
      "`kong`, `caddy`, `npm`, `nginx`, `traefik`, `compose` or `haproxy`: the program whose configuration the body is;" +
        " `auto`: the one of the archive or form",
    ),
    queryParameter(
      "agree_acme_terms",
      "1, with `from`: you agree to the terms of service of the CAs that the imported ACME accounts use, and the gateway requests certificates at once",
    ),
    queryParameter(
      "converted",
      "1: the file was converted from another program, as the command `import` does: stream routes whose port is in use are imported disabled, and agreed terms stay",
    ),
    dryRunParameter,
    forceParameter,
    passphraseHeader,
  ],
  requestBody: { required: true, content: documentContent },
  responses: writeResponses("Changes"),
};
