// The form of a plugin instance: scope, configuration and conditions; knows no plugin by name.
import { Alert, Button } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { lazy, Suspense, useMemo, useState } from "react";
import { useLocation, useSearchParams } from "wouter";
import type { Document } from "../../api/merge-patch.ts";
import { useMayChange } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { hasDestination, hasSecret, type JsonSchema } from "../../parts/schema/shape.ts";
import { SchemaFields } from "../../parts/schema-fields.tsx";
import { withoutSecrets } from "../../parts/schema/without-secrets.ts";
import { SecretHint } from "../../parts/secret-hint.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { type PluginFieldsProps, useErrorsBelow } from "./plugin-errors.ts";
import { PluginText } from "./plugin-text.tsx";
import {
  pluginSchema,
  type PluginSchema,
  type PluginValues,
  scopeFields,
  toBody,
  toValues,
} from "./plugin-values.ts";
import { isScopeMissing, ScopeSection } from "./scope-fields.tsx";
import { WhenSection } from "./when-section.tsx";

const SchemaForm = lazy(() => import("../../parts/schema-form.tsx"));
const LIST = pagePath("plugins");

interface Props extends FormStart<Read<"plugins">> {
  readonly schema: PluginSchema;
}

export function PluginForm({ source, template, schema }: Props) {
  const [, navigate] = useLocation();
  const [search] = useSearchParams();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  const [requested, setRequested] = useState<string | null>(null);
  const [isTried, setTried] = useState(false);
  const needs = schema.needs_admin ? "admin" : "editor";
  const initialScope = useMemo(() => scopeFromSearch(search), [search]);
  const shape = schema.schema as JsonSchema;
  const { form, ...rest } = useResourceForm<"plugins", PluginValues>({
    resource: "plugins",
    source,
    template,
    toBody,
    toValues: toValues(schema.name, initialScope),
    ...(hasSecret(shape) ? { withoutSecrets: toDraft(shape) } : {}),
    hasField: (path) => /^(?:config|when|label|priority)\b/.test(path),
    draftKey: `new ${schema.name}`,
    onSaved: ({ id }) => navigate(pagePath("plugins", id), { replace: true }),
  });
  const plugin = source?.value ?? null;
  const submit: typeof rest.submit = (event) => {
    const isMissing = isScopeMissing(form.getValues(), schema, requested);
    setTried(isMissing);
    if (!isMissing) return rest.submit(event);
    event?.preventDefault();
  };
  return (
    <FormPage
      title={plugin === null ? `New ${schema.name}` : (plugin.label ?? plugin.name)}
      text={schema.summary}
      parent={{ href: LIST, label: "Plugins" }}
      form={{ ...rest, submit }}
      needs={needs}
      isNew={plugin === null}
      actions={
        plugin !== null && (
          <Can needs={needs}>
            <Button
              variant="light"
              color="red"
              onClick={() => setPendingDelete([toPendingDelete(plugin)])}
            >
              Delete
            </Button>
          </Can>
        )
      }
    >
      <PluginText schema={schema} />
      <ScopeSection form={form} schema={schema} requested={requested} onRequest={setRequested} />
      {isTried && isScopeMissing(form.values, schema, requested) && (
        <Alert color="red" role="alert" mb="md">
          Choose a scope.
        </Alert>
      )}
      <ConfigSection form={form} schema={schema} isStored={plugin !== null} />
      <WhenSection form={form} />
      <MoreFields form={form} schema={schema} />
      <ConfirmDelete
        resource="plugins"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

const toDraft =
  (shape: JsonSchema) =>
  (values: PluginValues): PluginValues => ({
    ...values,
    config: withoutSecrets(shape, values.config) as PluginValues["config"],
  });

/** The scope that another page passes as `?route_id=…`. */
const scopeFromSearch = (search: URLSearchParams): Partial<PluginValues> =>
  Object.fromEntries(
    scopeFields.flatMap((field) => {
      const id = search.get(field);
      return id === null ? [] : [[field, id]];
    }),
  );

interface ConfigProps extends PluginFieldsProps {
  readonly schema: PluginSchema;
  readonly isStored: boolean;
}

function ConfigSection({ form, schema, isStored }: ConfigProps) {
  const isAllowed = useMayChange(schema.needs_admin ? "admin" : "editor");
  const errors = useErrorsBelow(form, "config");
  return (
    <Section title="Settings" text="Empty fields use the default shown.">
      {isStored && hasDestination(schema.schema as JsonSchema) && <SecretHint />}
      <Suspense fallback={<FormSkeleton />}>
        <SchemaForm
          schema={schema.schema as object}
          value={form.values.config}
          errors={errors}
          example={schema.example}
          isStored={isStored}
          isReadOnly={!isAllowed}
          onChange={(config) => {
            form.setFieldValue("config", config);
            for (const path of Object.keys(errors))
              form.clearFieldError(path === "" ? "config" : `config.${path}`);
          }}
        />
      </Suspense>
    </Section>
  );
}

interface MoreProps extends PluginFieldsProps {
  readonly schema: PluginSchema;
}

/** The fields that every plugin has. */
function MoreFields({ form, schema: { name, order } }: MoreProps) {
  const mayChange = useMayChange("editor");
  const fields = useMemo(() => {
    const { label, priority, on_error, enabled, tags, description } = pluginSchema.properties ?? {};
    const withExample = (field: JsonSchema | undefined, example: string): JsonSchema => ({
      ...field,
      form: { ...field?.form, example },
    });
    const properties = {
      label: withExample(label, name),
      priority: withExample(priority, String(order)),
      on_error,
      enabled,
      tags,
      description,
    };
    const groups = [{ id: "more", title: "Name and priority", folded: true, summary: "Enabled" }];
    return { properties, form: { groups } } as JsonSchema;
  }, [name, order]);
  return (
    <SchemaFields
      form={form as unknown as UseFormReturnType<Document>}
      schema={fields}
      isStored
      isReadOnly={!mayChange}
    />
  );
}
