// Writes docs/configuration.md to standard output, from the schemas and the help of the commands; run it with `make docs`.
import type { TSchema } from "@sinclair/typebox";
import { applyCommand, diffCommand } from "../src/cli/apply.ts";
import { createCheck } from "../src/cli/check.ts";
import { backupCommand } from "../src/cli/backup.ts";
import type { Command } from "../src/cli/command.ts";
import { createCompletion } from "../src/cli/completion.ts";
import { exportCommand } from "../src/cli/export.ts";
import { createImport } from "../src/cli/import.ts";
import { replayCommand } from "../src/cli/replay.ts";
import { createPluginCommand } from "../src/cli/plugin.ts";
import { createSchemaCommand } from "../src/cli/schema.ts";
import { healthcheckCommand } from "../src/cli/healthcheck.ts";
import { helpOf } from "../src/cli/help.ts";
import { createListenersCommand } from "../src/cli/listeners.ts";
import { createManual } from "../src/cli/manual.ts";
import { createResetAdminNetworks } from "../src/cli/reset-admin-networks.ts";
import { hashPasswordCommand } from "../src/cli/hash-password.ts";
import { createResetPassword } from "../src/cli/reset-password.ts";
import { createRotateKey } from "../src/cli/rotate-key.ts";
import { createServe } from "../src/cli/serve.ts";
import { createTokenCommand } from "../src/cli/token.ts";
import { createTrustCommand, createUntrustCommand } from "../src/cli/trust.ts";
import { fleetCommand } from "../src/cli/fleet.ts";
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
    "`/api/v1/services`. An upstream application. The body of a POST, PUT or PATCH may contain `targets`, a list of targets without `service_id`, which replaces all targets of the service. A PUT without it removes them and reports this in `X-Warning`; a PATCH without it does not change them. Routes use the protocols `http` and `https`, stream routes the others. See [health.md](health.md) for health checks, and [retries.md](retries.md) for retries, sticky sessions and hashing.",
  ],
  [
    "Targets",
    "target",
    targetInput,
    "`/api/v1/targets`, `/api/v1/services/:id/targets`. An upstream server of a service.",
  ],
  [
    "Routes",
    "route",
    routeInput,
    "`/api/v1/routes`. Rules that match requests to services. The highest `priority` wins; among equal priorities an exact host precedes a wildcard, which precedes any host; an exact path precedes a longer prefix, which precedes a regular expression; more conditions precede fewer, and the older route precedes the newer one.",
  ],
  [
    "Stream routes",
    "stream_route",
    streamRouteInput,
    "`/api/v1/stream-routes`. TCP and UDP ports that forward to a service, byte for byte: [streams.md](streams.md).",
  ],
  [
    "Plugins",
    "plugin",
    pluginInput,
    "`/api/v1/plugins`, and `/api/v1/plugins/schemas` for the available plugins and their settings. [Plugins](plugins/README.md) describes scopes and order; each plugin has its own page.",
  ],
  [
    "Consumers",
    "consumer",
    consumerInput,
    "`/api/v1/consumers`. Clients of the proxied APIs: [consumers.md](consumers.md).",
  ],
  [
    "Credentials",
    "credential",
    credentialInput,
    "`/api/v1/consumers/:id/credentials`, `/api/v1/credentials`. Credentials that authenticate a consumer: [consumers.md](consumers.md).",
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
    "`/api/v1/tokens`. A credential for a program, shown once on creation: [sign-in.md](sign-in.md#tokens).",
  ],
  [
    "Users",
    "user",
    userInput,
    "`/api/v1/users`. A user of the management API: [users.md](users.md).",
  ],
  [
    "Single sign-on",
    "sso",
    ssoInput,
    "`/api/v1/sso`. Sign-in to the management API with OpenID Connect: [sso.md](sso.md).",
  ],
  ["Settings", "settings", settingsInput, "`/api/v1/settings`. Settings of the whole gateway."],
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
    "`/api/v1/certificates`. Certificates that are uploaded, self-signed, issued by an ACME CA ([acme.md](acme.md)) or signed by the [local CA](local-ca.md).",
  ],
  [
    "ACME accounts",
    "acme_account",
    acmeAccountInput,
    "`/api/v1/acme/accounts`. Accounts at ACME CAs, which issue certificates: [acme.md](acme.md).",
  ],
  [
    "DNS providers",
    "dns_provider",
    dnsProviderInput,
    "`/api/v1/dns-providers`. Providers of the DNS zones, for dns-01 challenges. The fields of `config` depend on `type`: [dns-providers.md](dns-providers.md).",
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
    "`/api/v1/listeners`. Addresses and ports on which clients connect. The first start creates two, from `--http` and `--https`. [listeners.md](listeners.md) describes the fields and their cost.",
  ],
];

/** Nothing is run here. */
const never = (): never => {
  throw new Error("a command was run");
};

const commands: readonly Command[] = [
  createServe(() => Promise.resolve(0)),
  createCheck(new Map(), new URL(import.meta.url)),
  createResetPassword(never),
  hashPasswordCommand,
  createResetAdminNetworks(never),
  createListenersCommand(never),
  createTokenCommand(never),
  createTrustCommand(never),
  createUntrustCommand(never),
  createRotateKey(never),
  backupCommand,
  exportCommand,
  createImport(new Map()),
  replayCommand,
  createSchemaCommand(new Map()),
  createPluginCommand({ catalogue: new Map(), url: new URL(import.meta.url) }),
  diffCommand,
  applyCommand,
  healthcheckCommand,
  fleetCommand,
  upgradeCommand,
  createCompletion(() => []),
  createManual(() => []),
  versionCommand,
];

const text = `# Configuration

<!-- Written by \`make docs\` from the schemas and the help of the commands; do not edit by hand. -->

The configuration is stored in the data directory, and you change it through the management API, \`http://127.0.0.1:9080/api/v1\`. A
running gateway serves the reference of that API at \`/docs\` and \`/openapi.yaml\`. A [configuration file](gitops.md) is optional: with
\`serve --config\` the gateway follows that file.

Every object also has \`id\`, \`created_at\` and \`updated_at\`, which the gateway sets. A name is accepted wherever an id is expected.
PUT replaces an object and resets absent fields to their defaults; PATCH (RFC 7396) changes only the sent fields.

${sections.map(([title, , schema, intro]) => `## ${title}\n\n${intro}\n\n${tableOf(schema as Schema)}`).join("\n\n")}

## Command line

${commands.map((command) => `### sluice ${command.name}\n\n\`\`\`text\n${helpOf(command).trimEnd()}\n\`\`\``).join("\n\n")}

Exit codes: 0 success, 1 failure, 2 invalid command line. \`sluice upgrade\` also has 3: no upgrade was attempted.
`;

process.stdout.write(text);
