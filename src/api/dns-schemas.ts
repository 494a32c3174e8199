// Response schemas of DNS providers and of checks before a certificate is issued; used for the API description only.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { preflightInput } from "../applications/preflight.ts";
import { dnsTestInput } from "../acme/dns-providers.ts";
import { dnsProviderTypes } from "../model/dns-provider.ts";

const check = {
  name: t.String({ description: "Name of the check" }),
  status: t.Unsafe<string>({
    type: "string",
    enum: ["ok", "warning", "failed"],
    description: "warning: it may still work",
  }),
  message: t.String({ description: "Result in one sentence" }),
};

const ok = t.Boolean({ description: "Whether all checks passed" });

export const dnsSchemas: Readonly<Record<string, TSchema>> = {
  DnsProviderTest: dnsTestInput,
  DnsProviderType: t.Object(
    {
      type: t.Unsafe<string>({ type: "string", enum: [...dnsProviderTypes] }),
      title: t.String({ description: "Display name" }),
      help: t.String({ description: "Preparation at the provider" }),
      schema: t.Unknown({ description: "JSON Schema of `config`; `writeOnly` marks secrets" }),
      example: t.Unknown({ description: "Example of a `config`" }),
      needs_admin: t.Boolean({ description: "Whether only admins may write and test it" }),
    },
    { title: "DnsProviderType" },
  ),
  PreflightInput: preflightInput,
  PreflightReport: t.Object(
    {
      ok,
      challenge: t.String({ description: "Challenge type" }),
      checks: t.Array(
        t.Object({ domain: t.String({ description: "Name that was checked" }), ...check }),
      ),
    },
    { title: "PreflightReport" },
  ),
  CheckReport: t.Object(
    {
      ok,
      checks: t.Array(t.Object(check), { description: "In order of execution" }),
    },
    { title: "CheckReport" },
  ),
};
