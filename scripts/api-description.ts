// TypeScript types from the OpenAPI description of this checkout; needs neither a gateway nor a network.
import openapiTs, { astToString } from "openapi-typescript";
import { endpointsOf } from "../src/api/app.ts";
import { DESCRIPTION_PATH } from "../src/api/docs.ts";
import { createReference } from "../src/api/reference.ts";

/** Replaces the control plane: endpoints only store their arguments until a request calls them. */
const nothing: never = new Proxy((() => nothing) as never, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "" : nothing),
});

interface Description {
  readonly openapi: string;
  readonly info: { title: string; version: string };
  readonly paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
}

/** Every error has the same shape, so that one response per operation is enough. */
const refusal = {
  description: "Refused",
  content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
};

const onlySuccess = (responses: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(responses).filter(([status]) => Number(status) < 400));

/** The types of all paths, operations and schemas, as TypeScript. */
export async function apiTypes(): Promise<string> {
  const reference = createReference(endpointsOf(nothing, nothing), {
    version: "0",
    sessionCookie: "",
  });
  const answer = await reference.answer(DESCRIPTION_PATH);
  const description = (await answer.json()) as Description;
  for (const operation of Object.values(description.paths).flatMap((path) => Object.values(path)))
    operation.responses = { ...onlySuccess(operation.responses), default: refusal };
  return astToString(await openapiTs(description as never, { defaultNonNullable: false }));
}
