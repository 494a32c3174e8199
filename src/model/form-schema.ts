// The schemas of what the forms of the web UI edit, as plain JSON; run as a macro when the UI is bundled.
import type { TSchema } from "@sinclair/typebox";
import { collectionNames, definitionOf, pathOf } from "./gateway-config.ts";
import { referenceIn } from "./resource.ts";
import { settingsInput } from "./settings.ts";
import { ssoInput } from "./sso.ts";

/** By the path in the API: `dns-providers`. */
export const formSchemas: Readonly<Record<string, TSchema>> = {
  ...Object.fromEntries(
    collectionNames.map((name) => {
      const { api, input } = definitionOf(name);
      return [pathOf(name), withPickers(api.form ?? api.body ?? input)];
    }),
  ),
  settings: settingsInput,
  sso: ssoInput,
};

/** References to other objects are chosen from a list of these. */
function withPickers(schema: TSchema): TSchema {
  const to = referenceIn(schema);
  if (to !== null)
    return {
      ...schema,
      form: { of: pathOf(to as (typeof collectionNames)[number]), ...schema.form },
    };
  if (schema.properties === undefined) return schema;
  const members = Object.entries(schema.properties as Record<string, TSchema>);
  const properties = members.map(([name, member]) => [name, withPickers(member)]);
  return { ...schema, properties: Object.fromEntries(properties) };
}

/** The schema of a form. */
export function formSchemaOf(name: string): object {
  const schema = formSchemas[name];
  if (schema === undefined) throw new Error(`there is no form of "${name}"`);
  return JSON.parse(JSON.stringify(schema)) as object;
}
