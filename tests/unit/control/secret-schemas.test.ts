// Every secret in every schema declares its destination, or why it has none: otherwise an editor of other fields could read it.
import { describe, expect, test } from "bun:test";
import { Type as t, type TObject, type TSchema } from "@sinclair/typebox";
import { dnsProviders } from "../../../src/acme/dns/index.ts";
import { sinks } from "../../../src/observe/alerts/sinks.ts";
import {
  sendingCollections,
  sendingSingletons,
  withConfig,
} from "../../../src/control/secret-destinations.ts";
import { destination, markOf, secretUses } from "../../../src/model/destination.ts";
import { isSecretField } from "../../../src/model/export-document.ts";
import { secret } from "../../../src/pdk/fields.ts";
import { recordSchemas } from "../../../src/model/records.ts";
import { plugins } from "../../support/plugins.ts";

/** A field and the members that lead to it; `*` is any item or free name. */
interface Spot {
  readonly steps: readonly string[];
  readonly schema: TSchema;
  /** Whether it is one of several alternatives of the field around it. */
  readonly isAlternative: boolean;
}

function spotsOf(schema: TSchema, steps: readonly string[] = []): Spot[] {
  const inner = (of: unknown, name: string): Spot[] => {
    const own = of as TSchema;
    return [
      { steps: [...steps, name], schema: own, isAlternative: false },
      ...spotsOf(own, [...steps, name]),
    ];
  };
  return [
    ...Object.entries((schema.properties ?? {}) as object).flatMap(([name, of]) => inner(of, name)),
    ...Object.values((schema.patternProperties ?? {}) as object).flatMap((of) => inner(of, "*")),
    ...(schema.items === undefined ? [] : inner(schema.items, "*")),
    ...((schema.anyOf ?? []) as TSchema[]).flatMap((of) => [
      { steps, schema: of, isAlternative: true },
      ...spotsOf(of, steps),
    ]),
  ];
}

const isSecret = ({ schema }: Spot) => markOf(schema).isSecret;
const isSent = (spot: Spot) => isSecret(spot) && markOf(spot.schema).staysBecause === null;

/** A value that has what is required, what is on the way to the secret, and no other group that may be absent. */
function sampleOf(schema: TSchema, [step, ...rest]: readonly string[] = []): unknown {
  if (markOf(schema).isSecret) return { $secret: "x" };
  const options = schema.anyOf as TSchema[] | undefined;
  if (options !== undefined)
    return sampleOf(
      options.find((each) => each.type !== "null") ?? t.Null(),
      step === undefined ? [] : [step, ...rest],
    );
  if (schema.items !== undefined) return [sampleOf(schema.items as TSchema, rest)];
  if (schema.patternProperties !== undefined && schema.properties === undefined)
    return { x: sampleOf(Object.values(schema.patternProperties as object)[0] as TSchema, rest) };
  if (schema.properties === undefined) return "x";
  const required = new Set((schema.required ?? []) as string[]);
  return Object.fromEntries(
    Object.entries(schema.properties as Record<string, TSchema>)
      .filter(([name, of]) => name === step || required.has(name) || of.type !== "object")
      .map(([name, of]) => [name, sampleOf(of, name === step ? rest : [])]),
  );
}

interface Kind {
  readonly name: string;
  readonly record: TObject;
  readonly config: TSchema;
  /** The one address of a kind that has no setting for it. */
  readonly sentTo?: string | undefined;
}

const kinds: Kind[] = [
  ...plugins.map(({ name, config }) => ({ name, record: recordSchemas.plugins, config })),
  ...Object.values(sinks).map(({ type, config }) => ({
    name: `alert ${type}`,
    record: recordSchemas.alerts,
    config,
  })),
  ...Object.values(dnsProviders).map(({ type, config, sentTo }) => ({
    name: `DNS provider ${type}`,
    record: recordSchemas.dns_providers,
    config,
    sentTo,
  })),
];

/** What is wrong with the marks of a kind of configuration. */
function problemsOf({ record, config, sentTo }: Kind): string[] {
  const spots = spotsOf(config);
  const isMarked = spots.some(({ schema }) => markOf(schema).isDestination);
  return spots.flatMap(({ steps, schema }) => {
    const at = steps.join(".");
    const { isSecret: isOne, staysBecause } = markOf(schema);
    if (schema.writeOnly === true && !isOne) return [`${at} is write-only and no secret`];
    if (!isOne) return [];
    if (staysBecause !== null) return staysBecause.length > 10 ? [] : [`${at} has no reason`];
    if (sentTo !== undefined) return isMarked ? [`${at} has two kinds of destinations`] : [];
    const whole = withConfig(record, config);
    const uses = secretUses(whole, sampleOf(whole, ["config", ...steps]));
    const path = new RegExp(`^config\\.${at.replaceAll(".*", "(?:\\[0\\]|\\.x)")}$`);
    const use = uses.find((each) => path.test(each.path));
    const own = use?.destination.filter((field) => field.path.startsWith("config.")) ?? [];
    return own.length > 0 ? [] : [`${at} has no destination`];
  });
}

describe("each secret in a configuration has a destination, or stays for a reason", () => {
  test.each(kinds.map((kind) => [kind.name, kind] as const))("%s", (_, kind) => {
    expect(problemsOf(kind)).toEqual([]);
  });

  test("of plugins, alerts and DNS providers there are some that send secrets", () => {
    const sending = kinds.filter(({ config }) => spotsOf(config).some(isSent));
    expect(sending.map(({ name }) => name)).toEqual(
      [
        ...["access-log", "blocklist", "crowdsec", "ldap-auth", "oidc", "otel-tracing"],
        ...["alert webhook", "alert smtp"],
        ...Object.keys(dnsProviders)
          .filter((type) => type !== "exec")
          .map((type) => `DNS provider ${type}`),
      ].toSorted(
        (a, b) => kinds.findIndex((k) => k.name === a) - kinds.findIndex((k) => k.name === b),
      ),
    );
  });

  test.each([
    ["no destination at all", { token: secret({ description: "x" }), url: t.String() }],
    [
      "a destination only in another group that may be absent",
      {
        one: t.Optional(t.Object({ token: secret({ description: "x" }) })),
        two: t.Optional(t.Object({ url: destination(t.String()) })),
      },
    ],
    [
      "a destination only in the items of a list beside it that it is not in",
      { list: t.Array(t.Union([t.Object({ token: secret({ description: "x" }) }), t.Null()])) },
    ],
  ])("the test finds a secret with %s", (_, properties) => {
    const config = t.Object(properties as never);
    const found = problemsOf({ name: "x", record: recordSchemas.plugins, config });
    expect(found).toHaveLength(1);
    expect(found[0]).toEndWith("token has no destination");
  });
});

describe("each secret of a stored object has a destination, or stays for a reason", () => {
  test.each(Object.entries(recordSchemas))("%s", (name, schema) => {
    const spots = spotsOf(schema);
    const secrets = spots.filter(
      (spot) => isSecret(spot) || isSecretField(spot.steps.at(-1) ?? ""),
    );
    for (const spot of secrets.filter(({ isAlternative }) => !isAlternative)) {
      // `{"sealed": ...}` inside of a secret.
      const around = spots.find(({ steps }) => `${steps}` === `${spot.steps.slice(0, -1)}`);
      if (around !== undefined && isSecret(around)) continue;
      const { staysBecause } = markOf(spot.schema);
      const at = spot.steps.join(".");
      if (staysBecause !== null) expect([at, staysBecause.length > 10]).toEqual([at, true]);
      else expect([at, isSent(spot)]).toEqual([at, true]);
    }
    const isSending = secrets.some(isSent);
    if (isSending) {
      expect(spots.some(({ schema: of }) => markOf(of).isDestination)).toBe(true);
      expect([...sendingCollections, ...sendingSingletons] as string[]).toContain(name);
    }
  });

  test("the kind of what has a configuration of its own is a part of its destination", () => {
    const { plugins: plugin, alerts, dns_providers } = recordSchemas;
    for (const field of [
      plugin.properties.name,
      alerts.properties.type,
      dns_providers.properties.type,
    ])
      expect(field && markOf(field).isDestination).toBe(true);
  });
});

test("a destination is marked around the whole field, so that null is a value of it too", () => {
  const all = [...Object.values(recordSchemas), ...kinds.map(({ config }) => config)];
  for (const spot of all.flatMap((schema) => spotsOf(schema)))
    if (spot.isAlternative) expect(markOf(spot.schema).isDestination).toBe(false);
});

test("the page about secrets names each secret that is sent and each field of its destination", async () => {
  const page = await Bun.file(new URL("../../../docs/secrets.md", import.meta.url)).text();
  const section = /## Secret destinations(.*?)\n## /s.exec(page)?.[1] ?? "";
  const { acme_accounts: account, sso } = recordSchemas;
  const spots = [...kinds.map(({ config }) => config), account, sso].map((schema) =>
    spotsOf(schema),
  );
  const names = spots
    .filter((all) => all.some(({ schema }) => markOf(schema).isDestination))
    .flatMap((all) => all.filter((spot) => isSent(spot) || markOf(spot.schema).isDestination))
    .map(
      ({ steps, schema }) =>
        (schema["x-sent-as"] as string) ?? steps.findLast((step) => step !== "*"),
    )
    // The value of a header field stands for the list of them.
    .map((name) => (name === "value" ? "headers" : name));
  expect([...new Set(names)].filter((name) => !section.includes(`\`${name}\``))).toEqual([]);
});

/** Names of fields that say where something is sent, or who can read it on the way. */
const DESTINATION_NAME =
  /^(?:(?:.*_)?(?:ur[il]|host|port|address|server|endpoint|issuer|proxy|directory|tls|ca|ca_certificates?|protocol|scheme|transport)|start_tls|verify.*|insecure.*|follow.*|.*redirect.*)$/;

/** Those that do not, although they are called so. */
const NO_DESTINATIONS: Readonly<Record<string, string>> = {
  "oidc redirect_path": "browsers are sent there, with a code and no secret",
  "oidc post_logout_redirect_uri": "browsers are sent there, without a secret",
  "access-log filters.when.host": "this is of the request",
  "access-log filters.when.not.host": "this is of the request",
  "access-log sinks.*.syslog.address": "this sink sends no secret",
  "access-log sinks.*.syslog.transport": "this sink sends no secret",
  "access-log sinks.*.syslog.ca_certificate": "this sink sends no secret",
  "access-log sinks.*.tcp.address": "this sink sends no secret",
  "access-log sinks.*.udp.address": "this sink sends no secret",
};

test("no field that is called like a destination is left unmarked where a secret is sent", () => {
  const all = [
    ...kinds.map(({ name, config: schema }) => ({ name, schema })),
    ...Object.entries(recordSchemas).map(([name, schema]) => ({ name, schema })),
  ];
  const found = all
    .map(({ name, schema }) => ({ name, spots: spotsOf(schema) }))
    .filter(({ spots }) => spots.some(isSent))
    .flatMap(({ name, spots }) =>
      spots
        .filter(
          ({ steps, isAlternative }) => !isAlternative && DESTINATION_NAME.test(steps.at(-1) ?? ""),
        )
        .filter(({ schema }) => !markOf(schema).isDestination)
        .map(({ steps }) => `${name} ${steps.join(".")}`),
    );
  expect(found.toSorted()).toEqual(Object.keys(NO_DESTINATIONS).toSorted());
});
