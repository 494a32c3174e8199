// Rules against injected code: cross-site scripting, commands, templates, lookups; knows nothing of requests.
import type { Part, Rule } from "./rules.ts";

const ANYWHERE: readonly Part[] = ["path", "query", "header", "body"];
const HERE_AND_BODY: readonly Part[] = ["path", "query", "body"];

const xss = (rule: Omit<Rule, "ruleset">): Rule => ({ ...rule, ruleset: "xss" });
const probe = (rule: Omit<Rule, "ruleset">): Rule => ({ ...rule, ruleset: "rce-probe" });

const forBrowsers: readonly Rule[] = [
  xss({
    id: "script-tag",
    finds: "a script element",
    parts: ANYWHERE,
    patterns: [/<\/?script(?:[ />]|$)/],
  }),
  xss({
    id: "event-handler",
    finds: "an element, or the end of an attribute, with an event handler: <img onerror=",
    parts: ANYWHERE,
    patterns: [
      /<[a-z][^<>]*[ /"']on[a-z]+ ?=/,
      /["'`][ /]{0,4}on(?:error|load|click|focus|blur|change|input|submit|toggle|wheel|mouse[a-z]{2,5}|key[a-z]{2,5}|pointer[a-z]{2,6}) ?=/,
      /["'`][ /]{0,4}on(?:animation[a-z]{3,9}|transition[a-z]{3,6}|touch[a-z]{3,6}) ?=/,
    ],
  }),
  xss({
    id: "script-address",
    finds: "a script URL: javascript:alert(1)",
    parts: ANYWHERE,
    patterns: [
      /j ?a ?v ?a ?s ?c ?r ?i ?p ?t ?:[^ &<>:]{0,16}[(`]/,
      /vbscript ?: ?[a-z]{1,16} ?[("]/,
      /data: ?text\/html[;,]/,
    ],
  }),
  xss({
    id: "foreign-element",
    finds: "an element that embeds other pages or programs: <iframe, <object, <base",
    parts: HERE_AND_BODY,
    patterns: [/<(?:i?frame|frameset|object|embed|applet|base|meta|link|form)[ /]/],
  }),
  xss({
    id: "script-call",
    finds: "typical test calls of scripts: `alert(1)`, `document.cookie`",
    parts: ["path", "query"],
    patterns: [
      /\b(?:alert|confirm|prompt) ?(?:\(|`) ?(?:['"`/)\d]|document\b|location\b|origin\b)|\bdocument ?\. ?(?:cookie|write|domain)\b|\bstring\.fromcharcode ?\(/,
    ],
  }),
];

const forServers: readonly Rule[] = [
  probe({
    id: "log-lookup",
    finds: "a Log4j lookup (CVE-2021-44228), also split up",
    parts: ANYWHERE,
    patterns: [
      /\$\{ ?jndi ?:/,
      /\$\{[^${}]*\$\{/,
      /\$\{ ?(?:lower|upper|base64) ?:/,
      /\$\{[^ ${}:]*:-/,
      /\$\{[^ ${}:]*:[^ ${}:]*:-/,
    ],
  }),
  probe({
    id: "shell-function",
    finds: "a Bash function definition in a variable (CVE-2014-6271)",
    parts: ["query", "header"],
    patterns: [/\( ?\) ?\{ ?(?::|_|[^{}=]{0,8};) ?[;}>[]/],
  }),
  probe({
    id: "shell-command",
    finds: "a shell command after a command separator",
    parts: ["path", "query", "header", "body"],
    patterns: [
      /(?:[;|`]|&&|\$\() ?(?:\/(?:usr\/)?bin\/)?(?:cat|ls|head|tail|more|less|type|dir) [/.\\*-]/,
      /(?:[;|`]|&&|\$\() ?(?:\/(?:usr\/)?bin\/)?(?:(?:wget|curl|fetch) (?:-|https?:|\$)|(?:ba|da|z|k)?sh -[ci]|nc -|ncat |rm -[rf]|chmod \+?[0-7x]|ping -[nc] )/,
      /(?:[;|`]|&&|\$\() ?(?:\/(?:usr\/)?bin\/)?(?:id|whoami|uname|ifconfig|ipconfig|netstat)(?: -[a-z]{1,8})? ?(?:$|[;|&`)#])/,
      /(?:[;|`]|&&|\$\() ?(?:powershell\b|cmd(?:\.exe)? ?\/c|nslookup [a-z0-9])/,
      /(?:[;|`]|&&|\$\() ?(?:\/(?:usr\/)?bin\/)?(?:python[23]?|perl|ruby|php) -[cer] /,
      /\/bin\/(?:ba|da|z)?sh\b|\/dev\/(?:tcp|udp)\/|\$\{ifs\}|\$ifs\b/,
    ],
  }),
  probe({
    id: "expression",
    finds: "an expression of a Java framework (Struts, Spring)",
    parts: ANYWHERE,
    patterns: [
      /[%$#]\{ ?(?:\( ?#|#[a-z_]|@java|@org\.|t ?\( ?java|new java\.)|#_memberaccess|\bjava\.lang\.(?:runtime|processbuilder)|\bgetruntime ?\( ?\)|class\.module\.classloader|\bognl\.ognlcontext|@java\.lang/,
    ],
  }),
  probe({
    id: "template",
    finds: "a template expression such as a sum, or access to Python's built-ins",
    parts: ["path", "query", "body"],
    patterns: [
      /(?:\{\{|\$\{|#\{|<%=?) ?['"]?\d{1,8}['"]? ?\* ?['"]?\d{1,8}|__(?:import|globals|builtins|subclasses|mro|class)__ ?[[(.]|\bself\._templatereference__/,
    ],
  }),
  probe({
    id: "php-code",
    finds: "PHP code, or a URL by which PHP reads or runs client data",
    parts: ANYWHERE,
    patterns: [
      /<\?php\b|<\?= ?[$`a-z]/,
      /\bphp:\/\/(?:input|filter|stdin|fd|memory)|\bexpect:\/\/[a-z]|\b(?:allow_url_include|auto_prepend_file) ?=/,
      /data: ?(?:\/\/)?text\/plain;base64,pd9w/,
      /\bo:\d+:"[a-z_\\]+":\d+:\{/,
      /\b(?:system|passthru|shell_exec|popen|proc_open|eval|assert) ?\( ?(?:\$_(?:get|post|request|server|cookie)|base64_decode|['"][a-z])/,
    ],
  }),
  probe({
    id: "known-hole",
    finds: "a URL of a known exploit: eval-stdin.php, /cgi-bin/.%2e",
    parts: ["path"],
    patterns: [
      /eval-stdin\.php|\/vendor\/phpunit\/|\/_ignition\/execute-solution|\/actuator\/gateway\/routes|\/solr\/admin\/cores/,
      /\/cgi-bin\/(?:luci\/;|php$|sh$|bash$|test-cgi|jarrewrite|nslookup|\.)/,
      /\/boaform\/|\/hnap1\b|\/gponform\/|\/setup\.cgi$|\/jmx-console\/|\/invoker\/jmx|\/(?:shell|c99|r57|wso)\.(?:php|jsp|aspx)$/,
      /\.php\.(?:png|jpg|gif)$/,
    ],
  }),
  probe({
    id: "invoked-function",
    finds: "a framework method in the URL (ThinkPHP), or one of Node.js",
    parts: ["query", "body"],
    patterns: [
      /\\think\\|invokefunction|\bcall_user_func_array\b/,
      /\bchild_process\b|\bprocess\.(?:mainmodule|binding)\b/,
      /__proto__(?:[\].[]|['"]? ?[:=])|\bconstructor(?:\]?\[|\.)prototype\b/,
    ],
  }),
];

export const codeRules: readonly Rule[] = [...forBrowsers, ...forServers];
