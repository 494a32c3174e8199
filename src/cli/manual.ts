// The command `man`: the manual page sluice(1) in mdoc, made from the help and the flags of all commands.
import type { Command } from "./command.ts";
import { environmentName, type Flag, parseFlags } from "./flags.ts";
import { version } from "./version.ts";

/** `commands`: all, this one among them. */
export const createManual = (commands: () => readonly Command[]): Command => ({
  name: "man",
  summary: "Print the manual page",
  details:
    "To install it, write the output to /usr/local/share/man/man1/sluice.1. SOURCE_DATE_EPOCH sets its date, for packages.",
  flags: [],
  run(argv, { env, print }) {
    parseFlags([], argv, env);
    const seconds = env["SOURCE_DATE_EPOCH"] ?? "";
    print(
      manualOf(
        commands(),
        /^\d{1,11}$/.test(seconds) ? new Date(Number(seconds) * 1000) : new Date(),
      ),
    );
    return Promise.resolve(0);
  },
});

/** Of commands that print JSON. */
const OUTPUT: readonly string[] = [
  ".Sh OUTPUT",
  "Results are on standard output, messages and warnings on standard error,",
  "where a terminal also gets the progress of work that takes long.",
  ".Bl -tag -width Ds",
  ".It Fl \\-output Ar json",
  "Of check, diff, apply, import, listeners, backup, version and fleet status:",
  "one JSON object on standard output.",
  "check: problems (a list of texts) and counts;",
  "diff and apply: changes (a list of objects with action, kind, id, name",
  "and diff); import: the same, with report for another program;",
  "listeners: listeners and revision; backup: file, revision, bytes and key_ids;",
  "version: version, bun, platform, arch and commit,",
  "with \\-\\-check newest and is_newer;",
  "fleet status: head and nodes (name, state, version, served, seen_ms_ago, error).",
  ".El",
];

/** mdoc(7), which groff and mandoc read. */
function manualOf(commands: readonly Command[], date: Date): string {
  const day = date.toLocaleDateString("en-US", { dateStyle: "long", timeZone: "UTC" });
  return [
    `.Dd ${day}`,
    ".Dt SLUICE 1",
    ".Os",
    ".Sh NAME",
    ".Nm sluice",
    ".Nd self-hosted HTTP and TCP gateway, configured at run time",
    ".Sh SYNOPSIS",
    ".Nm",
    ".Ar COMMAND",
    ".Op Ar FLAGS",
    ".Sh DESCRIPTION",
    `This page describes version ${version}.`,
    "Each flag is also an environment variable: the command line comes first.",
    ".Sh COMMANDS",
    ...commands.flatMap(sectionOf),
    ".Sh ENVIRONMENT",
    ".Bl -tag -width Ds",
    ".It Ev SLUICE_TOKEN",
    "Token of the management API, for commands that call it.",
    ".It Ev SLUICE_PASSPHRASE",
    "Passphrase of encrypted exports.",
    ".It Ev SLUICE_SECRET_KEY",
    "Key of stored secrets, in place of the file secret.key in the data directory.",
    ".It Ev SLUICE_JOIN_TOKEN",
    "Token of fleet join, which fleet invite has printed; default: standard input.",
    ".El",
    ".Sh EXIT STATUS",
    ".Bl -tag -width Ds",
    ".It 0",
    "Success.",
    ".It 1",
    "Failure; the message is on standard error.",
    "Of check and plugin check: something is wrong, which the output lists.",
    "Of diff with \\-\\-exit\\-code: there are differences.",
    "Of healthcheck: the gateway is not ready.",
    "Of replay: responses differ.",
    ".It 2",
    "The command line is wrong; nothing was done.",
    ".It 3",
    "Of upgrade: no attempt was made.",
    "Of version \\-\\-check: there is a newer release.",
    ".El",
    ...OUTPUT,
    "",
  ].join("\n");
}

function sectionOf({ name, summary, usage, details, flags }: Command): string[] {
  const words = [flags.length > 0 ? "[FLAGS]" : "", usage ?? ""].filter((word) => word !== "");
  return [
    `.Ss sluice ${text(name)}`,
    `${text(summary)}.`,
    ".Pp",
    text(`Usage: ${["sluice", name, ...words].join(" ")}`),
    ...(details === undefined ? [] : detailsOf(details)),
    ...(flags.length === 0 ? [] : [".Bl -tag -width Ds", ...flags.flatMap(itemOf), ".El"]),
  ];
}

/** Two columns are a list of words and their meaning. */
function detailsOf(details: string): string[] {
  const lines = details.split("\n");
  const rows: { readonly word: string; meaning: string }[] = [];
  for (const line of lines) {
    const [, word, meaning = ""] = /^([\w-]+):? {2,}(.*)|^ +(.*)/.exec(line) ?? [];
    const before = rows.at(-1);
    if (word !== undefined) rows.push({ word, meaning });
    else if (before !== undefined) before.meaning += ` ${line.trim()}`;
  }
  if (rows.length === 0) return [".Pp", ...sentences(lines.join(" "))];
  const items = rows.flatMap(({ word, meaning }) => [`.It ${text(word)}`, ...sentences(meaning)]);
  return [".Bl -tag -width Ds", ...items, ".El"];
}

function itemOf({ name, value, description, fallback }: Flag): string[] {
  const argument = value === null ? "" : ` Ar ${text(value)}`;
  return [
    `.It Fl \\-${text(name)}${argument}`,
    ...sentences(/[.!?]$/.test(description) ? description : `${description}.`),
    ...(fallback === undefined ? [] : [`Default: ${text(fallback)}.`]),
    `Variable:`,
    `.Ev ${environmentName(name)} .`,
  ];
}

/** Each begins a line, as mdoc wants it for the space after a sentence. */
const sentences = (words: string): string[] =>
  words.split(/(?<=[.!?])\s+(?=[A-Z`])/).flatMap(wrapped);

const MAX_LINE = 78;

function wrapped(sentence: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of sentence.split(" ").map(escaped)) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (longer.length > MAX_LINE && line !== "") lines.push(line);
    line = longer.length > MAX_LINE ? word : longer;
  }
  return [...lines, line].map(guarded);
}

/** A line as it is. */
const text = (words: string): string => guarded(escaped(words));

const escaped = (words: string): string => words.replaceAll("\\", "\\e").replaceAll("-", "\\-");

/** A full stop or apostrophe at the start of a line would make it a macro. */
const guarded = (line: string): string => line.replace(/^[.']/, "\\&$&");
