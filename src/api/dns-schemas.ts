// Schemas of DNS providers and of checks before a certificate is ordered, for the description of the API; used for nothing else.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { preflightInput } from "../control/acme/preflight.ts";
import { dnsTestInput } from "../control/dns-providers.ts";
import { dnsProviderInput, dnsProviderTypes } from "../model/dns-provider.ts";
import { identity } from "../model/fields.ts";

const check = {
  name: t.String({ description: "What was looked at" }),
  status: t.Unsafe<string>({
    type: "string",
    enum: ["ok", "warning", "failed"],
    description: "warning: it may be right all the same",
  }),
  message: t.String({ description: "What was found, for people" }),
};

const ok = t.Boolean({ description: "Whether no check failed" });

export const dnsSchemas: Readonly<Record<string, TSchema>> = {
  DnsProvider: t.Composite([t.Object(identity), dnsProviderInput], { title: "DNS provider" }),
  DnsProviderInput: dnsProviderInput,
  DnsProviderTest: dnsTestInput,
  DnsProviderType: t.Object(
    {
      type: t.Unsafe<string>({ type: "string", enum: [...dnsProviderTypes] }),
      title: t.String({ description: "Its name for people" }),
      help: t.String({ description: "What has to be done at the provider first" }),
      schema: t.Unknown({ description: "JSON Schema of `config`; `writeOnly` marks secrets" }),
      example: t.Unknown({ description: "A `config`" }),
      needs_admin: t.Boolean({ description: "Whether only an admin may write and test it" }),
    },
    { title: "DnsProviderType" },
  ),
  PreflightInput: preflightInput,
  PreflightReport: t.Object(
    {
      ok,
      challenge: t.String({ description: "What the checks are about" }),
      checks: t.Array(
        t.Object({ domain: t.String({ description: "Which of the names" }), ...check }),
      ),
    },
    { title: "PreflightReport" },
  ),
  CheckReport: t.Object(
    {
      ok,
      checks: t.Array(t.Object(check), { description: "In the order in which they were made" }),
    },
    { title: "CheckReport" },
  ),
};
