// A list and a JSON editor for a resource without a form; knows no resource by name.
import { type Document, isDocument } from "../api/merge-patch.ts";
import { nameOf, type Read, type ResourceKey, resources, type Write } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";
import type { PageProps } from "../pages.ts";
import { useLocation } from "wouter";
import { CodeField } from "./code-field.tsx";
import { FormPage, type FormStart, ResourceLoader } from "./form-page.tsx";
import { Section } from "./page-layout.tsx";
import { useResourceForm } from "./resource-form.tsx";
import { ResourceTable, type ResourceTableProps } from "./resource-table.tsx";

interface Props<K extends ResourceKey> extends PageProps {
  readonly table: ResourceTableProps<K>;
  /** The initial JSON of a new object. */
  readonly example: Document;
}

export function JsonResourcePage<K extends ResourceKey>({ table, example, id }: Props<K>) {
  if (id === null) return <ResourceTable {...table} />;
  return (
    <ResourceLoader resource={table.resource} id={id}>
      {(start) => <Editor key={id} table={table} example={example} start={start} />}
    </ResourceLoader>
  );
}

interface EditorProps<K extends ResourceKey> {
  readonly table: ResourceTableProps<K>;
  readonly example: Document;
  readonly start: FormStart<Read<K>>;
}

function Editor<K extends ResourceKey>({ table, example, start }: EditorProps<K>) {
  const { resource, page } = table;
  const { word, writes } = resources[resource];
  const [, navigate] = useLocation();
  const parent = { href: pagePath(page), label: table.title };
  const { form, ...rest } = useResourceForm<K, { content: Document }>({
    resource,
    ...start,
    toValues: (object) => ({
      content: Object.keys(object).length === 0 ? example : withoutFacts(object),
    }),
    toBody: ({ content }) => content as Write<K>,
    onSaved: (object) => navigate(pagePath(page, object.id), { replace: true }),
  });
  const isNew = start.source === null;
  return (
    <FormPage
      title={isNew ? `New ${word}` : nameOf(start.source?.value ?? {})}
      parent={parent}
      form={rest}
      needs={writes}
      isNew={isNew}
    >
      <Section
        title="Configuration"
        text="In the format of the API; see its reference for all fields."
      >
        <CodeField
          label={`The ${word} as JSON`}
          minRows={14}
          value={form.values.content}
          error={form.errors["content"]}
          onChange={(next) => {
            if (isDocument(next)) form.setFieldValue("content", next);
          }}
        />
      </Section>
    </FormPage>
  );
}

/** Removes read-only fields. */
function withoutFacts(object: object): Document {
  const { id: _, created_at: __, updated_at: ___, ...rest } = object as Record<string, unknown>;
  return rest;
}
