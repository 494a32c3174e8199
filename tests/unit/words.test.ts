// Rejects private words where the field has a term: in texts of the web UI, in the docs, and in names of the sources.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { formSchemas } from "../../src/model/form-schema.ts";

/** A regular expression that is matched as whole words, and the standard term. */
type Word = readonly [refused: string, standard: string];

/** Rejected in texts of the web UI and in the docs. */
const PHRASES: readonly Word[] = [
  ["whoever|whomever", "name the actor: the client, the user, the admin"],
  ["nobody|no one", "say who does what, positively"],
  ["somebody|someone", "name the actor: a user, an admin, a client"],
  ["everybody|everyone", "all clients, all users, or every role"],
  ["told", "notified, reported, sent"],
  ["heard", "received"],
  ["lent", "passed"],
  ["let(s|ting)? (\\w+ )?(in|through)", "allows"],
  ["(keeps?|kept|keeping) (\\w+ )?out", "denies"],
  ["leaves? out|left out", "ejected (a target), omitted (a field)"],
  ["other id", "Custom ID"],
  ["shar(es?|ed|ing) out", "load balancing, distributed"],
  ["trying again", "Retries"],
  ["keep visitors", "Sticky sessions"],
  ["why it ended( so)?", "Outcome"],
  ["altogether", "Total"],
  ["(none|no route) (takes|took) (it|this)( request)?", "no route matched"],
  ["route takes|takes (every|the|this|a) request", "matches"],
  ["(?<!:)(authority|authorities)", "CA"],
  [
    "order(s|ed|ing)? ((a|an|the|one|another|new|real) )*certificates?",
    "issue or request a certificate",
  ],
  ["certificates? (is|are|be|was|were) (being )?ordered", "issued, requested"],
  ["(more|most) special", "most specific scope"],
  ["(?<!DNS )(answers?|answered|answering)", "response, responds"],
  ["(?<!OpenAPI )documents?", "configuration file"],
  ["by (itself|themselves|himself)", "automatically"],
  ["time-outs?", "timeout"],
  ["(this|the) page follows", "Updates automatically"],
  ["how it comes along", "Progress"],
  ["what is told|where it is told", "Events; where to send them"],
  ["only while it is", "delete, or say what Off does"],
  ["what is left empty|stands in the field", "Empty fields use the default shown"],
  ["so many requests in a while", "Limits requests per client and time window"],
  ["has lost what is in", "Without the passphrase the file cannot be recovered"],
  ["comes? in whom", "no client gains access that the source denied"],
  ["the price of Bun", "What Bun costs per request"],
  ["shapes the house", "Architecture decisions"],
  ["slips? of the pen", "so that typos are reported"],
  ["colou?rs? of one's own|of one's own", "custom"],
  [
    "\\w*colour\\w*|\\w*behaviour\\w*|neighbours?|recognis\\w+|authoris\\w+",
    "American English: color",
  ],
];

/** Rejected in texts of the web UI alone: docs may need them for RFCs, or as ordinary English. */
const UI_PHRASES: readonly Word[] = [
  ["header fields?", "headers"],
  ["(runs?|ran|running) out", "expires"],
  ["in which order", "Execution order"],
  ["(is|are|be) needed", "is required"],
  ["nothing fits", "No matches"],
  ["goes? on", "continues"],
  ["anew", "again, reload"],
  ["is it taken|is taken|is not taken", "matches, does not match"],
  ["place (\\d+|…)", "Priority"],
  ["takes(?! (effect|precedence|some|time))", "matches, accepts"],
  ["said", "set, reported"],
];

/** Rejected as a name, in comments and as the name of a file. */
const NAMES: readonly Word[] = [
  ["StreamVisit|StreamScene|streamScene|visitOf", "StreamPluginContext, StreamPluginHost"],
  ["WorkerScope", "WorkerServices, WorkerPort"],
  ["unspoken|unspokenOf|finishers|createFinishers", "implicit-objects, import-normalizers"],
  ["shaken|onShaken", "onHandshake"],
  ["clientAuthority", "clientAuthKey"],
  ["VisitScene|ServedScene|HeardScene", "PluginContext, PluginHost, LogOnlyHost"],
  ["whoever|whomever|nobody|somebody|told|heard|lent", "name the actor and what it does"],
  ["Surroundings", "ServeContext"],
  ["throughPlugins", "runPluginChain"],
  ["goOn", "next"],
  ["EndFacts|EndResult|RequestFacts", "PluginContext, RequestResult"],
  ["EndedRequests|logLater", "DeferredLogQueue, logBatch"],
  ["heardIn|isHeardOnly|isHeard", "logOnlyHost, isLogOnly, hasLogHandlers"],
  ["ProxiedRequest", "ProxyTransaction"],
  ["own-answer|OwnAnswer", "local-response, LocalResponse"],
  ["TargetAnswer|AnswerDraft", "UpstreamResponse, ResponseDraft"],
  ["CollectBudget|hangUp", "BufferBudget, abortConnection"],
  ["passed-on", "buffer-release"],
  ["ConnectionHome|ConnectionUser", "ConnectionOwner, ConnectionHandler"],
  ["takeBack", "release"],
  ["payIn|takeToken", "deposit, withdraw"],
  ["stayedWith", "stickyTarget"],
  ["ArrivingConnection|CarriedConnection", "PendingConnection, LoopbackTunnel"],
  ["WorkerHappening|tellOfWorker", "WorkerLifecycleEvent, onWorkerEvent"],
  ["keepUp", "runMaintenance"],
  ["TargetRows|TrafficRows|TargetSeries", "RolloutObserver"],
  ["AccountKeeper|ApplicationKeeper", "AccountProvisioner, ApplicationReconciler"],
  ["TokenDesk", "TokenClient"],
  ["told-fields", "notification-fields"],
  ["Doomed|doomed|toDoomed|setDoomed", "PendingDelete"],
  ["plainNumbered", "implicitTag"],
  ["collect_bytes", "response_buffer_bytes"],
  ["broken_off|isBrokenOff|left_out", "aborted_responses, isResponseAborted, omitted"],
  ["useTellDone|tellError|tellDone", "useNotifyDone, notifyError"],
  ["takesPath|isPlaceMissing|sendUnlessShutOut", "matchesPath, isScopeMissing"],
  ["RowPlace", "RowPosition"],
];

const root = resolve(import.meta.dir, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const filesOf = (pattern: string) => [...new Bun.Glob(pattern).scanSync(root)].toSorted();
const sources = filesOf("src/**/*.{ts,tsx}");

interface Text {
  readonly path: string;
  readonly text: string;
}

const transpilers = {
  ts: new Bun.Transpiler({ loader: "ts" }),
  tsx: new Bun.Transpiler({ loader: "tsx", tsconfig: { compilerOptions: { jsx: "react" } } }),
};
const LITERALS = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g;

/** The string literals of a source and the texts of its JSX; the transpiler drops comments and types. */
function textsOf(source: string, path: string): string[] {
  const code = transpilers[path.endsWith("x") ? "tsx" : "ts"].transformSync(
    // A macro would run.
    source.replaceAll(' with { type: "macro" }', ""),
  );
  return (code.replaceAll(/^import .*$/gm, "").match(LITERALS) ?? []).map((literal) =>
    literal.slice(1, -1).replaceAll(/\$\{[^}]*\}/g, "…"),
  );
}

const uiTexts = (): readonly Text[] => [
  ...sources
    .filter((path) => path.startsWith("src/ui/") && !path.endsWith(".d.ts"))
    .flatMap((path) => textsOf(read(path), path).map((text) => ({ path, text }))),
  ...Object.entries(formSchemas).map(([name, schema]) => ({
    path: `the form of ${name}`,
    text: formTexts(schema).join("\n"),
  })),
];

/** What the model says about the fields of a form. */
function formTexts(part: unknown): string[] {
  if (typeof part !== "object" || part === null) return [];
  return Object.entries(part).flatMap(([name, value]) =>
    name === "form" ? [JSON.stringify(value)] : formTexts(value),
  );
}

/** Without code, which quotes names and outputs. */
const docTexts = (): readonly Text[] =>
  ["README.md", ...filesOf("docs/**/*.md")].map((path) => ({
    path,
    text: read(path)
      .replaceAll(/^```.*?^```/gms, "")
      .replaceAll(/`[^`\n]*`/g, ""),
  }));

/** Reads files of older versions, with their names. */
const RENAMED = "src/import/transfer/renamed-fields.ts";

const nameTexts = (): readonly Text[] =>
  sources
    .filter((path) => path !== RENAMED)
    .map((path) => ({ path, text: `${path}\n${read(path)}` }));

/** One line for each place: file, the word, and its replacement. */
function breaches(words: readonly Word[], texts: readonly Text[], flags: string): string[] {
  const patterns = words.map(([refused, standard]) => ({
    pattern: new RegExp(`(?<![\\w$])(?:${refused})(?![\\w$])`, flags),
    standard,
  }));
  return texts.flatMap(({ path, text }) =>
    patterns.flatMap(({ pattern, standard }) =>
      [...text.matchAll(pattern)].map(
        ([found]) => `${path}: "${found.replaceAll(/\s+/g, " ")}" → ${standard}`,
      ),
    ),
  );
}

describe("the terms of the field", () => {
  test("are used in the texts of the web UI", () => {
    expect(breaches([...PHRASES, ...UI_PHRASES], uiTexts(), "gi")).toEqual([]);
  });

  test("are used in the docs", () => {
    expect(breaches(PHRASES, docTexts(), "gi")).toEqual([]);
  });

  test("are the names in the sources", () => {
    expect(breaches(NAMES, nameTexts(), "g")).toEqual([]);
  });
});

describe("the check", () => {
  test("reads strings, templates and JSX, and neither comments nor code", () => {
    const source = `
      // told in a comment
      import { told } from "./told.ts";
      export const Page = ({ told }) => <p title="one">two {told} <b>{\`three \${told}\`}</b></p>;
    `;
    const texts = textsOf(source, "page.tsx").join(" ");
    for (const word of ["one", "two", "three"]) expect(texts).toContain(word);
    expect(breaches(PHRASES, [{ path: "page.tsx", text: texts }], "gi")).toEqual([]);
  });

  test("finds a rejected word with the term for it", () => {
    const text = "Requests are\nshared out, and a target is left out.";
    expect(breaches(PHRASES, [{ path: "a.md", text }], "gi")).toEqual([
      'a.md: "left out" → ejected (a target), omitted (a field)',
      'a.md: "shared out" → load balancing, distributed',
    ]);
  });
});
