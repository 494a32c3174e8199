// Writes docs/configuration.md to standard output, from the schemas and the help of the commands; run it with `make docs`.
import type { TSchema } from "@sinclair/typebox";
import { applyCommand, diffCommand } from "../src/cli/apply.ts";
import { createCheck } from "../src/cli/check.ts";
import { backupCommand } from "../src/cli/backup.ts";
import type { Command } from "../src/cli/command.ts";
import { exportCommand } from "../src/cli/export.ts";
import { createImport } from "../src/cli/import.ts";
import { healthcheckCommand } from "../src/cli/healthcheck.ts";
import { helpOf } from "../src/cli/help.ts";
import { createResetAdminNetworks } from "../src/cli/reset-admin-networks.ts";
import { createResetPassword } from "../src/cli/reset-password.ts";
import { rotateKeyCommand } from "../src/cli/rotate-key.ts";
import { createServe } from "../src/cli/serve.ts";
import { createTokenCommand } from "../src/cli/token.ts";
import { upgradeCommand } from "../src/cli/upgrade.ts";
import { versionCommand } from "../src/cli/version.ts";
import { acmeAccountInput } from "../src/model/acme-account.ts";
import { alertInput } from "../src/model/alert.ts";
import { applicationInput } from "../src/model/application.ts";
import { certificateInput } from "../src/model/certificate.ts";
import { consumerInput } from "../src/model/consumer.ts";
import { credentialInput } from "../src/model/credential.ts";
import { dnsProviderInput } from "../src/model/dns-provider.ts";
import { listenerInput } from "../src/model/listener.ts";
import { pluginInput } from "../src/model/plugin.ts";
import { routeInput } from "../src/model/route.ts";
import { secretInput } from "../src/model/secret.ts";
import { serviceInput } from "../src/model/service.ts";
import { settingsInput } from "../src/model/settings.ts";
import { ssoInput } from "../src/model/sso.ts";
import { streamRouteInput } from "../src/model/stream-route.ts";
import { targetInput } from "../src/model/target.ts";
import { tokenInput } from "../src/model/token.ts";
import { userInput } from "../src/model/user.ts";
import { fieldTable, type Schema } from "./field-table.ts";

const tableOf = (schema: Schema) => fieldTable(schema, () => "");

const sections: readonly (readonly [string, string, TSchema, string])[] = [
  [
    "Services",
    "service",
    serviceInput,
    "`/api/v1/services`. An upstream application. The body of a POST, PUT or PATCH may hold `targets`, a list of targets without `service_id`: all targets that the service has afterwards. A PUT without it removes them and says so in `X-Warning`; a PATCH without it leaves them alone. Traffic is served for the protocols `http` and `https`. What health checks do is in [health.md](health.md), retries, sticky sessions and hashing in [retries.md](retries.md).",
  ],
  [
    "Targets",
    "target",
    targetInput,
    "`/api/v1/targets`, `/api/v1/services/:id/targets`. One server of a service.",
  ],
  [
    "Routes",
    "route",
    routeInput,
    "`/api/v1/routes`. Which requests go to which service. The highest `priority` wins; among equals an exact host goes before a wildcard and that before any, an exact path before a longer prefix and that before a regular expression, more conditions before fewer, and the older route before the younger.",
  ],
  [
    "Stream routes",
    "stream_route",
    streamRouteInput,
    "`/api/v1/stream-routes`. TCP and UDP ports whose traffic goes to a service byte for byte: [streams.md](streams.md).",
  ],
  [
    "Plugins",
    "plugin",
    pluginInput,
    "`/api/v1/plugins`, and `/api/v1/plugins/schemas` for what there is and how it is configured. What happens to requests on their way, and where: [plugins](plugins/README.md). The settings of each one are on its own page.",
  ],
  [
    "Consumers",
    "consumer",
    consumerInput,
    "`/api/v1/consumers`. Who uses the proxied APIs: [consumers.md](consumers.md).",
  ],
  [
    "Credentials",
    "credential",
    credentialInput,
    "`/api/v1/consumers/:id/credentials`, `/api/v1/credentials`. What a consumer is recognised by: [consumers.md](consumers.md).",
  ],
  [
    "Secrets",
    "secret",
    secretInput,
    '`/api/v1/secrets`. A value that other objects refer to as `{"$secret": "name"}`, stored encrypted and never shown: [secrets.md](secrets.md).',
  ],
  [
    "Tokens",
    "token",
    tokenInput,
    "`/api/v1/tokens`. A credential for a program, shown once when it is made: [sign-in.md](sign-in.md#tokens).",
  ],
  [
    "Users",
    "user",
    userInput,
    "`/api/v1/users`. A person who may sign in at the management API: [users.md](users.md).",
  ],
  [
    "Single sign-on",
    "sso",
    ssoInput,
    "`/api/v1/sso`. How people sign in at the management API with OpenID Connect: [sso.md](sso.md).",
  ],
  ["Settings", "settings", settingsInput, "`/api/v1/settings`. What holds for the whole gateway."],
  [
    "Applications",
    "application",
    applicationInput,
    "`/api/v1/applications`. Service, targets, route, certificate and more in one request: [applications.md](applications.md).",
  ],
  [
    "Certificates",
    "certificate",
    certificateInput,
    "`/api/v1/certificates`. Uploaded, signed by the gateway itself, or ordered at a certificate authority: [acme.md](acme.md).",
  ],
  [
    "ACME accounts",
    "acme_account",
    acmeAccountInput,
    "`/api/v1/acme/accounts`. Where certificates are ordered: [acme.md](acme.md).",
  ],
  [
    "DNS providers",
    "dns_provider",
    dnsProviderInput,
    "`/api/v1/dns-providers`. Who writes the records that prove names by dns-01. The fields of `config` depend on `type`: [dns-providers.md](dns-providers.md).",
  ],
  [
    "Alerts",
    "alert",
    alertInput,
    "`/api/v1/alerts`. Which events send notifications, and where. The fields of `config` depend on `type`: [alerts.md](alerts.md).",
  ],
  [
    "Listeners",
    "listener",
    listenerInput,
    "`/api/v1/listeners`. Where clients connect. Two are made at the first start from `--http` and `--https`. What the fields do, and what some of them cost, is in [listeners.md](listeners.md).",
  ],
];

/** Nothing is run here. */
const never = (): never => {
  throw new Error("a command was run");
};

const commands: readonly Command[] = [
  createServe(() => Promise.resolve(0)),
  createCheck(new Map()),
  createResetPassword(never),
  createResetAdminNetworks(never),
  createTokenCommand(never),
  rotateKeyCommand,
  backupCommand,
  exportCommand,
  createImport(new Map()),
  diffCommand,
  applyCommand,
  healthcheckCommand,
  upgradeCommand,
  versionCommand,
];

const text = `# Configuration

<!-- Written by \`make docs\` from the schemas and the help of the commands; do not edit by hand. -->

The configuration lives in the data directory and is changed through the management API, \`http://127.0.0.1:9080/api/v1\`. A
running gateway describes that API at \`/docs\` and \`/openapi.yaml\`. There is no configuration file, unless you want [one](gitops.md): with \`serve --config\` the gateway
is as that file says.

Every object also has \`id\`, \`created_at\` and \`updated_at\`, which the gateway sets. A name stands in wherever an id is asked
for. PUT replaces an object and brings absent fields back to their defaults; PATCH (RFC 7396) changes what is sent.

${sections.map(([title, , schema, intro]) => `## ${title}\n\n${intro}\n\n${tableOf(schema as Schema)}`).join("\n\n")}

## Command line

${commands.map((command) => `### sluice ${command.name}\n\n\`\`\`text\n${helpOf(command).trimEnd()}\n\`\`\``).join("\n\n")}

Exit codes: 0 done, 1 failed, 2 the command line was not understood. \`sluice upgrade\` has 3 as well: nothing was tried.
`;

process.stdout.write(text);
