// The rules of waf-lite, which match decoded text; knows nothing of requests.
import { codeRules } from "./code-rules.ts";
import { exploitRules } from "./exploit-rules.ts";
import { sqlRules } from "./sql-rules.ts";

/** Parts of a request that rules inspect. */
export type Part = "path" | "query" | "header" | "user-agent" | "body";

export const defaultRulesets = ["path-traversal", "sqli", "xss", "rce-probe", "dotfiles"] as const;
export const rulesetNames = [...defaultRulesets, "block-exploits"] as const;
export type RulesetName = (typeof rulesetNames)[number];

export interface Rule {
  /** Unique; `waf.<id>` is the reason in the log. */
  readonly id: string;
  readonly ruleset: RulesetName;
  /** What it finds, as a noun phrase. */
  readonly finds: string;
  readonly parts: readonly Part[];
  /**
   * One must match. They match decoded text in lower case, with white space collapsed to one space. Each takes linear time:
   * repeated parts are bounded or cannot begin where they end.
   */
  readonly patterns: readonly RegExp[];
  /** Or one of these: texts that follow each other, each step with alternatives. */
  readonly sequences?: readonly (readonly (readonly string[])[])[];
  /** Whether it matches the text as the client sent it. */
  readonly isRaw?: true;
}

const traversal: readonly Rule[] = [
  {
    id: "dot-segment",
    ruleset: "path-traversal",
    finds: "path traversal (../) hidden by several encodings in the path",
    parts: ["path"],
    patterns: [/[/\\]\.{2,3};?(?:[/\\]|$)/],
  },
  {
    id: "climbing",
    ruleset: "path-traversal",
    finds: "repeated path traversal: ../../",
    parts: ["query", "header", "body"],
    patterns: [/\.{2,4};?[/\\]{1,4}\.{2,4};?[/\\]/],
  },
  {
    id: "system-file",
    ruleset: "path-traversal",
    finds: "a file of the operating system or of a server: /etc/passwd, win.ini, WEB-INF/web.xml",
    parts: ["path", "query", "header", "body"],
    patterns: [
      /[/\\]etc[/\\]{1,4}(?:passwd|shadow|group|hosts|issue|crontab|sudoers|ssh[/\\])|[/\\]proc[/\\]{1,4}(?:self|\d{1,7})[/\\]{1,4}(?:environ|cmdline|maps|fd[/\\])|[/\\]windows[/\\]{1,4}(?:win\.ini|system32[/\\])|[/\\=]boot\.ini\b|web-inf[/\\]{1,4}web\.xml/,
    ],
  },
  {
    id: "file-uri",
    ruleset: "path-traversal",
    finds: "a URL of a local file, or of an archive for PHP",
    parts: ["query"],
    patterns: [
      /(?:^|[=&'" (])(?:file:\/{2,3}(?:\/|[a-z]:|etc|proc|var)|(?:phar|zip|glob|ogg):\/\/)/,
    ],
  },
];

const dotfiles: readonly Rule[] = [
  {
    id: "repository",
    ruleset: "dotfiles",
    finds: "the directory of a version control system: .git, .svn, .hg, .bzr",
    parts: ["path"],
    patterns: [/[/\\]\.(?:git|svn|hg|bzr)(?:[/\\]|$)/],
  },
  {
    id: "environment-file",
    ruleset: "dotfiles",
    finds: "an application's settings file: .env, .env.production",
    parts: ["path"],
    patterns: [
      /[/\\]\.env(?:[._-]?(?:local|prod|production|dev|development|stage|staging|test|live|bak|backup|old|save|swp|orig|\d)|~)?$/,
    ],
  },
  {
    id: "private-file",
    ruleset: "dotfiles",
    finds: "a file or directory of an account or a web server: .ssh, .aws, .htpasswd",
    parts: ["path"],
    patterns: [
      /[/\\]\.(?:(?:ssh|aws|docker|kube|gnupg|azure)[/\\]|(?:htaccess|htpasswd|npmrc|pypirc|netrc|pgpass|my\.cnf|bash_history|bashrc|bash_profile|zsh_history|mysql_history|ds_store|git-credentials)$)/,
    ],
  },
  {
    id: "backup-file",
    ruleset: "dotfiles",
    finds: "a backup of a settings file, or a database dump",
    parts: ["path"],
    patterns: [
      /[/\\](?:wp-config|config|configuration|settings|database|localsettings)(?:\.inc)?\.(?:php|yml|yaml|json|py)(?:\.?(?:bak|backup|old|save|swp|orig|txt|\d)|~)$|[/\\](?:dump|backup|db|database|mysql)\.sql(?:\.gz|\.zip|\.bz2)?$/,
    ],
  },
];

/** All rules, in order of evaluation. */
export const rules: readonly Rule[] = [
  ...traversal,
  ...sqlRules,
  ...codeRules,
  ...dotfiles,
  ...exploitRules,
];
