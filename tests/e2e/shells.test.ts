// Completion in real shells, and the manual page in the programs that show it.
import { afterAll, beforeAll, expect } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { executable } from "../support/executable.ts";

const directory = mkdtempSync(join(tmpdir(), "sluice-shells-"));
const scriptOf = (shell: string) => join(directory, `completion.${shell}`);

beforeAll(async () => {
  for (const shell of ["bash", "zsh", "fish"])
    writeFileSync(scriptOf(shell), (await runCommand(["completion", shell])).stdout);
  mkdirSync(join(directory, "a directory"));
  writeFileSync(join(directory, "a file.yaml"), "");
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function run(words: readonly string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([...words], {
    cwd: directory,
    env: { PATH: process.env["PATH"] ?? "", HOME: directory, TERM: "xterm", ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code: await child.exited, output, errors };
}

/** Words on a line, the last of them unfinished, and everything that a shell offers for it. */
const cases: readonly (readonly [string, readonly string[]])[] = [
  ["sluice exp", ["export"]],
  ["sluice reset-", ["reset-admin-networks", "reset-password"]],
  ["sluice hash", ["hash-password"]],
  ["sluice export --m", ["--minimal"]],
  ["sluice import --from k", ["kong"]],
  ["sluice import --mode ", ["merge", "replace"]],
  ["sluice fleet ", ["adopt", "init", "invite", "join", "leave", "move", "remove", "status"]],
  ["sluice completion z", ["zsh"]],
  ["sluice help rot", ["rotate-key"]],
  ["sluice serve --data-dir a", ["a directory"]],
  ["sluice apply a\\ f", ["a file.yaml"]],
];

/** Without signs that mark directories, and quotation. */
const plain = (offers: readonly string[]) =>
  offers.map((offer) => offer.replaceAll("\\", "").replace(/\/$/, "")).sort();

needs("linux").test.each(cases)("bash completes %j", async (line, offers) => {
  const program = `
    source ${scriptOf("bash")}
    complete -p sluice >/dev/null || exit 1
    eval "COMP_WORDS=($1)"
    case $1 in *' ') COMP_WORDS+=("") ;; esac
    COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
    _sluice
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { code, output, errors } = await run(["bash", "--norc", "-c", program, "bash", line]);
  expect([code, errors, plain(output.trim().split("\n"))]).toEqual([0, "", [...offers]]);
});

needs("fish").test.each(cases)("fish completes %j", async (line, offers) => {
  const program = `source ${scriptOf("fish")}; complete -C $argv[1]`;
  const { code, output, errors } = await run(["fish", "-N", "-c", program, line]);
  const words = output
    .trim()
    .split("\n")
    .map((each) => each.split("\t")[0] ?? "");
  expect([code, errors, plain(words)]).toEqual([0, "", [...offers]]);
});

/** A shell on a terminal: what compadd gets is what it offers. */
const ZSH = `
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; autoload -Uz compinit; compinit -u -D; source $1"
zpty -w shell 'compadd() {
  if [[ "$*" == *-[ADO]* ]]; then builtin compadd "$@"; return; fi
  local -a offers; builtin compadd -O offers "$@"
  (( $#offers )) && print -rl -- "offer "$^offers
  builtin compadd "$@"
}'
zpty -w shell 'finish() { zle -M ""; print -r -- "the end" }; zle -N finish; bindkey "^X" finish; print -r -- ready:$(( 1 + 1 ))'
zpty -r -m shell read '*ready:2*' >/dev/null
zpty -w -n shell "$2"$'\\t\\x18'
zpty -r -m shell text '*the end*'
print -r -- "$text"
zpty -d shell
`;

needs("zsh").test.each(cases)("zsh completes %j", async (line, offers) => {
  const words = ["zsh", "-f", "-c", ZSH, "zsh", scriptOf("zsh"), line];
  const { output } = await run(words);
  const found = [...output.matchAll(/offer ([^\r\n]*)/g)].map(([, offer = ""]) => offer);
  expect(plain([...new Set(found)])).toEqual([...offers]);
});

needs("executable", "zsh", "fish").test(
  "the executable prints the same scripts as the sources, and each shell reads its own",
  async () => {
    for (const shell of ["bash", "zsh", "fish"]) {
      const printed = await runCommand(["completion", shell], { binary: executable });
      expect(printed.stdout).toBe(await Bun.file(scriptOf(shell)).text());
      const read = await run([shell, "-n", scriptOf(shell)]);
      expect(read).toEqual({ code: 0, output: "", errors: "" });
    }
  },
);

needs("executable", "mandoc").test("the manual page is one for mandoc", async () => {
  const env = { SOURCE_DATE_EPOCH: "1767225600" };
  const { stdout } = await runCommand(["man"], { binary: executable, env });
  const page = join(directory, "sluice.1");
  writeFileSync(page, stdout);
  expect(await run(["mandoc", "-T", "lint", "-W", "all", page])).toMatchObject({
    code: 0,
    output: "",
  });
  const { output } = await run(["mandoc", "-T", "ascii", page]);
  const text = output.replaceAll(/.\x08/g, "");
  expect(text).toContain("Usage: sluice export [FLAGS]");
  expect(text).toContain("January 1, 2026");
  expect(text).toMatch(/--minimal\n\s+Without defaults, times and ids/);
  expect(text).toContain("SLUICE_DATA_DIR");
});
