// Asks the address that an application is to lead to for its first page, and says in words who answers; changes nothing.
import { Type as t } from "@sinclair/typebox";
import { applicationInput } from "../../model/application.ts";
import { decode } from "../../model/decode.ts";
import { invalid } from "../../model/error.ts";
import type { Check, TrialReport } from "../acme/dns/trial.ts";
import { quote, reasonOf } from "../auth/sso/provider-request.ts";
import { parseUpstream } from "./upstream.ts";

/** What is asked. */
export const upstreamCheckInput = t.Object(
  {
    upstream: t.String({ maxLength: 2048, description: "Address, such as http://10.0.0.5:3000" }),
    host: t.Optional(
      t.String({
        maxLength: 253,
        pattern: applicationInput.properties.domains.items.pattern ?? "",
        errorMessage: "must be a host name",
        description: "Name that people reach it by; sent as Host, as requests will have it",
      }),
    ),
  },
  { additionalProperties: false, title: "UpstreamCheckInput" },
);

const TIMEOUT_MS = 5000;

/** Throws for what is no address; everything else is told in the report. */
export async function checkUpstream(body: unknown): Promise<TrialReport> {
  const { upstream, host } = decode(upstreamCheckInput, body);
  const { pattern, errorMessage } = applicationInput.properties.upstream.anyOf[0];
  if (!new RegExp(pattern ?? "").test(upstream)) throw invalid("upstream", String(errorMessage));
  parseUpstream(upstream);
  const check = await ask(upstream, host);
  return { ok: check.status !== "failed", checks: [check] };
}

async function ask(upstream: string, host: string | undefined): Promise<Check> {
  const say = (status: Check["status"], message: string): Check => ({
    ...{ name: "upstream", status },
    message: `${upstream} ${message}`,
  });
  try {
    const response = await fetch(upstream, {
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: host === undefined || host.includes("*") ? {} : { host },
    });
    void response.body?.cancel().catch(() => undefined);
    const { status, headers } = response;
    const to = quote(headers.get("location"), []);
    if (status >= 500) return say("warning", `answers, but with status ${status}`);
    if (status >= 300 && status < 400 && to !== "")
      return say("ok", `answers with status ${status} and leads to ${to}`);
    return say("ok", `answers with status ${status}`);
  } catch (error) {
    return say("failed", reasonOf(error, { timeoutMs: TIMEOUT_MS }));
  }
}
