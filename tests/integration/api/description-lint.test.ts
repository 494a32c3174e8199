// The OpenAPI description under the default rules of Redocly and Spectral, and its examples against the schemas of the model.
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { type RulesetDefinition, Spectral } from "@stoplight/spectral-core";
import { oas } from "@stoplight/spectral-rulesets";
import type { TSchema } from "@sinclair/typebox";
import { describe, expect, test } from "bun:test";
import { examples } from "../../../src/api/examples.ts";
import { schemas } from "../../../src/api/schemas.ts";
import { tagDescriptions } from "../../../src/api/tags.ts";
import { decode } from "../../../src/model/decode.ts";
import { collectionNames, definitionOf } from "../../../src/model/gateway-config.ts";
import { useGateway } from "./client.ts";

const api = useGateway();

const textOf = async () => String((await api.callRoot("GET /openapi.yaml")).body);

describe("the description", () => {
  test("passes the recommended rules of Redocly", async () => {
    const config = await createConfig({ extends: ["recommended"] });
    const source = await textOf();
    const problems = await lintFromString({ source, absoluteRef: "openapi.yaml", config });
    // Both redirect the browser, in success and failure.
    const redirects = problems.filter(
      ({ ruleId, location: [at] }) =>
        ruleId === "operation-2xx-response" && /sso~1(start|callback)/.test(at?.pointer ?? ""),
    );
    expect(redirects.length).toBe(2);
    expect(problems.filter((problem) => !redirects.includes(problem))).toEqual([]);
  });

  test("passes the default rules of Spectral", async () => {
    const spectral = new Spectral();
    const rules = oas as RulesetDefinition;
    // The operator of the gateway is the contact, and knows.
    spectral.setRuleset({ extends: [rules], rules: { "info-contact": "off" } });
    const problems = await spectral.run(Bun.YAML.parse(await textOf()) as Record<string, unknown>);
    expect(problems.map(({ code, message, path }) => ({ code, message, path }))).toEqual([]);
  });

  test("has a sentence about each group of operations, and no other group", async () => {
    const { paths, tags } = Bun.YAML.parse(await textOf()) as {
      paths: Record<string, Record<string, { tags: string[] }>>;
      tags: { name: string }[];
    };
    const used = Object.values(paths).flatMap((methods) =>
      Object.values(methods).flatMap((operation) => operation.tags),
    );
    expect(tags.map(({ name }) => name)).toEqual(Object.keys(tagDescriptions));
    expect([...new Set(used)].sort()).toEqual(Object.keys(tagDescriptions).sort());
  });
});

describe("the examples", () => {
  test.each(Object.entries(examples))("of %s is valid", (name, example) => {
    expect(decode(schemas[name] as TSchema, example)).toMatchObject(example);
  });

  test("are there for every collection", () => {
    for (const name of collectionNames)
      expect(examples).toHaveProperty(`${definitionOf(name).api.schema}Input`);
  });
});
