// The command `completion`: scripts with which shells complete commands, flags and values, made from the table of flags.
import { suggestion } from "../model/suggestion.ts";
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { takeOperand } from "./operands.ts";
import { UsageError } from "./usage-error.ts";

/** What a shell offers for a value: one of the words, a file, a directory, or nothing. */
type Offer = { readonly words: readonly string[] } | "file" | "directory" | "nothing";

type Write = (commands: readonly Command[]) => string;

const shells: Readonly<Record<string, Write>> = { bash: bashOf, zsh: zshOf, fish: fishOf };
const names = Object.keys(shells);

/** `commands`: all, this one among them. */
export const createCompletion = (commands: () => readonly Command[]): Command => ({
  name: "completion",
  summary: "Print the completion script of a shell",
  usage: names.join("|"),
  details:
    "bash:  sluice completion bash > /etc/bash_completion.d/sluice\n" +
    "zsh:   sluice completion zsh > /usr/local/share/zsh/site-functions/_sluice\n" +
    "fish:  sluice completion fish > ~/.config/fish/completions/sluice.fish",
  flags: [],
  run(argv, { env, print }) {
    const { operand, rest } = takeOperand([], argv, `name the shell: ${names.join(", ")}`);
    parseFlags([], rest, env);
    const write = Object.hasOwn(shells, operand) ? shells[operand] : undefined;
    if (write === undefined)
      throw new UsageError(
        `"${operand}" must be ${names.join(" or ")}${suggestion(operand, names)}`,
      );
    print(write(commands()));
    return Promise.resolve(0);
  },
});

function offerOf({ value, choices }: Flag): Offer {
  if (choices !== undefined) return { words: choices };
  if (value === "FILE" || value === "PATH") return "file";
  return value === "DIR" ? "directory" : "nothing";
}

/** What follows the flags of a command. */
function operandOf({ usage = "" }: Command, commands: readonly Command[]): Offer {
  if (usage.includes("COMMAND")) return { words: commands.map(({ name }) => name) };
  // The first word of each alternative.
  if (usage.includes("|")) return { words: usage.match(/(?<=^\W*|\|\s*)[\w-]+/g) ?? [] };
  return usage.includes("FILE") ? "file" : "nothing";
}

const inQuotes = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

function bashOf(commands: readonly Command[]): string {
  const reply: Record<Exclude<Offer, object>, string> = {
    file: "_sluice_paths -f",
    directory: "_sluice_paths -d",
    nothing: ":",
  };
  const replyOf = (offer: Offer) =>
    typeof offer === "object" ? wordsOf(offer.words) : reply[offer];
  const wordsOf = (words: readonly string[]) =>
    `COMPREPLY=($(compgen -W ${inQuotes(words.join(" "))} -- "$cur"))`;
  const values = commands.flatMap(({ name, flags }) =>
    flags
      .filter(({ value }) => value !== null)
      .map((flag) => `    "${name} --${flag.name}") ${replyOf(offerOf(flag))}; return ;;`),
  );
  const rest = commands.map(
    (command) => `    ${command.name}) ${replyOf(operandOf(command, commands))} ;;`,
  );
  const flags = commands.map(({ name, flags }) => `    ${name}) ${wordsOf(flagsOf(flags))} ;;`);
  return `# Completion of sluice for bash.
_sluice_paths() {
  # Names may have spaces.
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen "$1" -- "$cur"))
}
_sluice() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]}
  COMPREPLY=()
  # The shell makes three words of --flag=value.
  if [ "$cur" = = ]; then cur=; elif [ "$prev" = = ]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  if [ "$COMP_CWORD" = 1 ]; then
    ${wordsOf(commands.map(({ name }) => name))}
    return
  fi
  case "$command $prev" in
${values.join("\n")}
  esac
  case "$cur" in
  -*) case "$command" in
${flags.join("\n")}
    esac ;;
  *) case "$command" in
${rest.join("\n")}
    esac ;;
  esac
}
complete -F _sluice sluice
`;
}

const flagsOf = (flags: readonly Flag[]): readonly string[] => [
  ...flags.map(({ name }) => `--${name}`),
  "--help",
];

function zshOf(commands: readonly Command[]): string {
  const action = (offer: Offer) => {
    if (typeof offer === "object") return `(${offer.words.join(" ")})`;
    return { file: "_files", directory: "_files -/", nothing: " " }[offer];
  };
  // Brackets and colons end parts of a specification.
  const text = (words: string) => words.replaceAll(/[\\[\]:]/g, "\\$&");
  const specOf = (flag: Flag) => {
    const many = flag.repeats === true ? "*" : "";
    const value = flag.value === null ? "" : `:${text(flag.value)}:${action(offerOf(flag))}`;
    const sign = flag.value === null ? "" : "=";
    return inQuotes(`${many}--${flag.name}${sign}[${text(flag.description)}]${value}`);
  };
  const cases = commands.map((command) => {
    const operand = operandOf(command, commands);
    const last = operand === "nothing" ? [] : [inQuotes(`:argument:${action(operand)}`)];
    const specs = [...command.flags.map(specOf), inQuotes("--help[Show the help]"), ...last];
    return `      ${command.name})\n        _arguments \\\n          ${specs.join(" \\\n          ")} ;;`;
  });
  const list = commands.map(({ name, summary }) => `    ${inQuotes(`${name}:${summary}`)}`);
  return `#compdef sluice
# Completion of sluice for zsh.
_sluice() {
  local state line
  local -a commands
  commands=(
${list.join("\n")}
  )
  _arguments -C '1:command:->command' '*::argument:->argument'
  case $state in
  command) _describe command commands ;;
  argument)
    case $words[1] in
${cases.join("\n")}
    esac ;;
  esac
}
# Either autoloaded from a directory of fpath, or sourced.
if [ "$funcstack[1]" = _sluice ]; then _sluice "$@"; else compdef _sluice sluice; fi
`;
}

function fishOf(commands: readonly Command[]): string {
  const text = (words: string) => `'${words.replaceAll(/['\\]/g, "\\$&")}'`;
  const action = (offer: Offer) => {
    if (typeof offer === "object") return `-x -a ${text(offer.words.join(" "))}`;
    return { file: "-r -F", directory: "-x -a '(__fish_complete_directories)'", nothing: "-x" }[
      offer
    ];
  };
  const linesOf = (command: Command): string[] => {
    const at = `complete -c sluice -n '__sluice_runs ${command.name}'`;
    const operand = operandOf(command, commands);
    const last =
      operand === "nothing"
        ? []
        : [operand === "file" ? `${at} -F` : `${at} ${action(operand).replace("-x ", "")}`];
    return [
      `complete -c sluice -n __sluice_begins -a ${command.name} -d ${text(command.summary)}`,
      ...command.flags.map((flag) => {
        const value = flag.value === null ? "" : ` ${action(offerOf(flag))}`;
        return `${at} -l ${flag.name}${value} -d ${text(flag.description)}`;
      }),
      `${at} -l help -d 'Show the help'`,
      ...last,
    ];
  };
  return `# Completion of sluice for fish.
function __sluice_begins
  test (count (commandline -opc)) -eq 1
end
function __sluice_runs
  set -l words (commandline -opc)
  test (count $words) -ge 2; and test $words[2] = $argv[1]
end
complete -c sluice -f
${commands.flatMap(linesOf).join("\n")}
`;
}
