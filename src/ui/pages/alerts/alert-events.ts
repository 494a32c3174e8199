// Labels of the alert events, from the schema of the form; renders nothing.
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { JsonSchema } from "../../parts/schema/shape.ts";

const { properties = {} } = formSchemaOf("alerts") as JsonSchema;
const texts = properties["events"]?.items?.form?.options ?? {};

export const alertEvents: readonly string[] = Object.keys(texts);

/** `A target is down`; an unknown event keeps its name. */
export const labelOf = (event: string): string =>
  event === "test" ? "Test" : (texts[event]?.split(":")[0] ?? event.replaceAll("_", " "));
