// The form of a DNS provider: its settings by the schema of its type, and a test.
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import { includesRole, useRead, useRole } from "../../api/queries.ts";
import type { Read, Schemas } from "../../api/resources.ts";
import type { FormStart } from "../../parts/form-page.tsx";
import { ObjectForm } from "../../parts/object-form.tsx";
import { Can, HelpText } from "../../parts/page-layout.tsx";
import type { JsonSchema } from "../../parts/schema/shape.ts";
import { schemaOfType } from "../../parts/schema-fields.tsx";
import { SecretHint } from "../../parts/secret-hint.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { ZoneTest } from "./zone-test.tsx";

type ProviderType = Schemas["DnsProviderType"];

const schema = formSchemaOf("dns-providers") as JsonSchema;
const initial = { type: "cloudflare", name: "cloudflare" };

/** The supported provider types. */
export function useProviderTypes(): readonly ProviderType[] {
  const { data } = useRead<readonly ProviderType[]>("dns-providers/types");
  return data?.value ?? [];
}

type Start = FormStart<Read<"dns-providers">>;

export function ProviderForm(start: Start) {
  const types = useProviderTypes();
  return types.length === 0 ? <FormSkeleton /> : <TypedForm start={start} types={types} />;
}

interface TypedProps {
  readonly start: Start;
  readonly types: readonly ProviderType[];
}

function TypedForm({ start, types }: TypedProps) {
  const role = useRole();
  const stored = start.source?.value ?? null;
  const isAdminOnly = (type: unknown) =>
    types.find((one) => one.type === type)?.needs_admin === true;
  const usable = types.filter(
    ({ type }) => !isAdminOnly(type) || includesRole(role, "admin") || type === stored?.type,
  );
  const needs = isAdminOnly(stored?.type) ? "admin" : "editor";
  return (
    <ObjectForm
      resource="dns-providers"
      schema={schema}
      schemaFor={({ type }) => schemaOfType(schema, usable, type)}
      start={start}
      initial={initial}
      needs={needs}
      isClonable={false}
      text="A DNS API in which the gateway writes challenge records."
      onChange={(name, value, form) => {
        const { name: before, type } = form.values;
        if (name === "type" && (before === "" || before === type))
          form.setFieldValue("name", value);
      }}
      after={({ form }) => ({
        provider: (
          <>
            <HelpText>{types.find(({ type }) => type === form.values["type"])?.help}</HelpText>
            {stored !== null && <SecretHint />}
          </>
        ),
      })}
      below={(provider, { isDirty }) =>
        provider !== null && (
          <Can needs={needs}>
            <ZoneTest id={provider.id} zone={provider.zones[0] ?? ""} isDirty={isDirty} />
          </Can>
        )
      }
    />
  );
}
