// The permissions of each role, in one sentence, from the schema of the form; renders nothing.
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { JsonSchema } from "../../parts/schema/shape.ts";

const { properties = {} } = formSchemaOf("users") as JsonSchema;

export const roleTexts = properties["role"]?.form?.options ?? {};
