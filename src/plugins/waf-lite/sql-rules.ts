// Rules against SQL injection; knows nothing of requests.
import type { Part, Rule } from "./rules.ts";

const VALUES: readonly Part[] = ["query", "body"];
const ANYWHERE: readonly Part[] = ["path", "query", "header", "body"];

const sqli = (rule: Omit<Rule, "ruleset">): Rule => ({ ...rule, ruleset: "sqli" });

export const sqlRules: readonly Rule[] = [
  sqli({
    id: "sql-union",
    finds: "UNION SELECT",
    parts: ANYWHERE,
    patterns: [/\bunion[ (]{1,8}(?:(?:all|distinct)[ (]{1,8})?select\b/],
  }),
  sqli({
    id: "sql-tautology",
    finds: "an always-true condition after a quote or a number: ' OR '1'='1",
    parts: ANYWHERE,
    patterns: [
      /['"][ )]{0,4}(?:or|and|xor|\|\||&&)[ (]{0,4}(?:not )?['"]\w{0,16}['"]? ?(?:[=<>]|like\b|in ?\(|between\b)/,
      /['"][ )]{0,4}(?:or|and|xor|\|\||&&)[ (]{0,4}(?:not )?\d{1,9} ?(?:[=<>]|like\b|in ?\(|between\b)/,
      /(?:^|[=&])[ -]?\d{1,9}[ )]{1,4}(?:or|and|xor|\|\||&&)[ (]{1,4}(?:not )?['"]?\d{1,9}['"]? ?(?:[=<>]|like\b)/,
    ],
  }),
  sqli({
    id: "sql-comment",
    finds: "a quote with the rest of the statement commented out: admin'--",
    parts: VALUES,
    patterns: [/'[ )]{0,8}(?:;? ?--(?:[ &+-]|$)|;? ?#(?:&|$)|;? ?\/\*)/],
  }),
  sqli({
    id: "sql-stacked",
    finds: "a second statement after a semicolon: ; DROP TABLE",
    parts: ANYWHERE,
    patterns: [
      /; ?(?:drop (?:table|database|schema|view|user)|alter (?:table|user)|truncate table|create (?:table|user)|insert into|delete from)\b/,
      /; ?(?:exec(?:ute)?[ (]{1,4}(?:master|xp_|sp_|immediate|@)|declare @|shutdown(?: with| ?--))/,
      /; ?update \w+ set\b/,
    ],
  }),
  sqli({
    id: "sql-delay",
    finds: "a delay function for timing attacks: SLEEP(5), WAITFOR DELAY",
    parts: ANYWHERE,
    patterns: [
      /\b(?:pg_)?sleep ?\( ?['"]?\d|\bbenchmark ?\( ?\d{3}|\bwaitfor (?:delay|time) ?['"(]|\bdbms_(?:pipe\.receive_message|lock\.sleep|session\.sleep)\b/,
    ],
  }),
  sqli({
    id: "sql-catalogue",
    finds: "system tables of databases: information_schema, sqlite_master",
    parts: ["path", "query", "header"],
    patterns: [
      /\binformation_schema\b ?[.`]|\bpg_catalog\.|\bsqlite_(?:master|schema)\b|\bmysql\.(?:user|innodb_table_stats)\b|\bsys(?:objects|columns)\b|\bsys\.(?:tables|objects|user_objects)\b|@@(?:version|hostname|datadir)\b/,
    ],
  }),
  sqli({
    id: "sql-function",
    finds: "functions and clauses of injections: LOAD_FILE(, EXTRACTVALUE(, INTO OUTFILE",
    parts: ANYWHERE,
    patterns: [
      /\b(?:extractvalue|updatexml|load_file|group_concat|utl_http\.request|utl_inaddr\.get_host_address|xp_cmdshell|xp_dirtree) ?[( ]|\binto (?:out|dump)file\b|\bprocedure analyse ?\(/,
    ],
  }),
  sqli({
    id: "sql-subquery",
    finds: "a subquery after a value: ' AND (SELECT",
    parts: ["path", "query", "header"],
    patterns: [/(?:['"\d)]|\b(?:or|and|xor|exists|case when)|\|\|) ?\({1,8} ?select[ (*@]/],
  }),
];
