// The page of one object of any resource: its form by the schema, with actions; knows no resource by name.
import { Button } from "@mantine/core";
import type { FormErrors } from "@mantine/form";
import { type ComponentType, type ReactNode, useState } from "react";
import { Link, useLocation } from "wouter";
import { capitalised } from "../api/changes.tsx";
import { portErrorOf } from "../api/error.ts";
import type { Document } from "../api/merge-patch.ts";
import { useMayChange } from "../api/queries.ts";
import {
  nameOf,
  pageNameOf,
  type Read,
  type ResourceKey,
  resources,
  type Role,
  type Write,
} from "../api/resources.ts";
import { pagePath } from "../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "./confirm-delete.tsx";
import { FormPage, type FormStart } from "./form-page.tsx";
import { Can } from "./page-layout.tsx";
import { type ResourceForm, useResourceForm } from "./resource-form.tsx";
import type { FieldInputProps } from "./schema/field-frame.tsx";
import type { JsonSchema } from "./schema/shape.ts";
import { ofStored, SchemaFields, schemaOptions } from "./schema-fields.tsx";

/** The state that slots of the form read and change. */
export type ObjectFormState = Pick<ResourceForm<Document>, "form" | "isDirty">;

interface Props<K extends ResourceKey> {
  readonly resource: K;
  readonly schema: object;
  readonly start: FormStart<Read<K>>;
  /** About a new object; a stored one shows its description. */
  readonly text: string;
  /** Of a new object that is no clone, beside the defaults. */
  readonly initial?: Document;
  /** Whether an object can be cloned. Default: true. */
  readonly isClonable?: boolean;
  /** More buttons. */
  readonly actions?: (object: Read<K>) => ReactNode;
  /** Content above the form of a stored object, such as its live state. */
  readonly before?: (object: Read<K>, state: ObjectFormState) => ReactNode;
  /** Content above the fields. */
  readonly notice?: (state: ObjectFormState) => ReactNode;
  /** Content below the fields. */
  readonly below?: (object: Read<K> | null, state: ObjectFormState) => ReactNode;
  /** Follows a change by changes of other fields. */
  readonly onChange?: (name: string, value: unknown, form: ObjectFormState["form"]) => void;
  /** The schema where it depends on values, such as a type. */
  readonly schemaFor?: (values: Document) => JsonSchema;
  /** More errors, by path. */
  readonly check?: (values: Document) => FormErrors;
  /** Whether it has shown the saved object itself. */
  readonly onSaved?: (object: Read<K>) => boolean;
  /** Least role that may save; default: that of the resource. */
  readonly needs?: Role;
  /** Inputs made by hand, by path. */
  readonly overrides?: Readonly<Record<string, ComponentType<FieldInputProps>>>;
  /** More content of a section, by its id. */
  readonly after?: (state: ObjectFormState) => Readonly<Record<string, ReactNode>>;
}

export function ObjectForm<K extends ResourceKey>(props: Props<K>) {
  const { resource, start, text, before, notice, overrides, after } = props;
  const [, navigate] = useLocation();
  const isNew = start.source === null;
  const [schema] = useState(() => {
    const whole = props.schema as JsonSchema;
    return isNew ? whole : ofStored(whole);
  });
  const { schemaFor = () => schema } = props;
  const options = schemaOptions(schema, {
    isStored: !isNew,
    ...(props.schemaFor === undefined ? {} : { schemaFor }),
    ...(props.check === undefined ? {} : { check: props.check }),
  });
  const [template] = useState(() => ({
    ...props.initial,
    ...start.template,
    ...fromSearch(schema),
  }));
  const { word, plural, writes } = resources[resource];
  const { needs = writes } = props;
  const page = pageNameOf(resource);
  const { form, ...rest } = useResourceForm<K, Document>({
    ...options,
    resource,
    source: start.source,
    template: template as Partial<Read<K>>,
    toBody: options.toBody as (values: Document) => Write<K>,
    fieldErrorOf: (error) => {
      const found = portErrorOf(error);
      const field = Object.keys(schema.properties ?? {}).find((name) =>
        new RegExp(`^(?:listen_)?${found?.field}$`).test(name),
      );
      return found === null || field === undefined ? null : { field, text: found.text };
    },
    onSaved: (saved) => {
      if (props.onSaved?.(saved) !== true) navigate(pagePath(page, saved.id), { replace: true });
    },
  });
  const object = start.source?.value ?? null;
  const state = { form, isDirty: rest.isDirty };
  const mayChange = useMayChange(needs);
  const { description } = (object ?? {}) as { readonly description?: string };
  return (
    <FormPage
      title={object === null ? `New ${word}` : nameOf(object)}
      text={object === null ? text : description}
      parent={{ href: pagePath(page), label: capitalised(plural) }}
      form={rest}
      needs={needs}
      isNew={object === null}
      actions={object !== null && <Actions {...props} object={object} page={page} />}
      before={object !== null && before?.(object, state)}
    >
      {notice?.(state)}
      <SchemaFields
        form={form}
        schema={schemaFor(form.values)}
        isStored={object !== null && typeOf(object) === typeOf(form.values)}
        onChange={(name, value) => props.onChange?.(name, value, form)}
        isReadOnly={!mayChange}
        {...(overrides === undefined ? {} : { overrides })}
        {...(after === undefined ? {} : { after: after(state) })}
      />
      {props.below?.(object, state)}
    </FormPage>
  );
}

/** Secrets are stored for one type. */
const typeOf = (object: object): unknown => (object as { readonly type?: unknown }).type;

/** `new?service_id=ID` starts with that service. */
function fromSearch({ properties = {} }: JsonSchema): Record<string, string> {
  const search = [...new URLSearchParams(location.search)];
  return Object.fromEntries(search.filter(([name]) => Object.hasOwn(properties, name)));
}

interface ActionsProps<K extends ResourceKey> extends Pick<
  Props<K>,
  "resource" | "actions" | "isClonable" | "needs"
> {
  readonly object: Read<K>;
  readonly page: string;
}

function Actions<K extends ResourceKey>(props: ActionsProps<K>) {
  const { resource, object, page, actions, isClonable = true } = props;
  const { needs = resources[resource].writes } = props;
  const [, navigate] = useLocation();
  const [pending, setPending] = useState<readonly PendingDelete[] | null>(null);
  return (
    <>
      {actions?.(object)}
      <Can needs={needs}>
        {isClonable && (
          <Button
            variant="default"
            component={Link}
            href={`${pagePath(page, "new")}?from=${object.id}`}
          >
            Clone
          </Button>
        )}
        <Button variant="light" color="red" onClick={() => setPending([toPendingDelete(object)])}>
          Delete
        </Button>
      </Can>
      <ConfirmDelete
        resource={resource}
        objects={pending}
        onClose={() => setPending(null)}
        onDeleted={() => navigate(pagePath(page))}
      />
    </>
  );
}
