// The form state of one object: validation, API errors at their fields, drafts, merging; renders no field.
import { type FormRulesRecord, type UseFormReturnType, useForm } from "@mantine/form";
import { useDebouncedCallback } from "@mantine/hooks";
import { type ReactNode, useState } from "react";
import { useSave } from "../api/changes.tsx";
import { useConnection } from "../api/connection-context.ts";
import type { SendOptions } from "../api/connection.ts";
import { ApiError, toFormPath } from "../api/error.ts";
import { type Document, isSame, mergePatch } from "../api/merge-patch.ts";
import type { Versioned } from "../api/queries.ts";
import type { Read, ResourceKey, Write } from "../api/resources.ts";
import { type Conflict, ConflictPrompt, contested } from "./conflict-prompt.tsx";
import { dropDraft, loadDraft, storeDraft } from "./drafts.ts";
import { useLeaveGuard } from "./leave-guard.tsx";

export interface ResourceFormOptions<K extends ResourceKey, V extends object> {
  readonly resource: K;
  /** The object and its ETag as read; null: the form creates one. */
  readonly source: Versioned<Read<K>> | null;
  /** The initial object of a new one: a clone, or null. */
  readonly template?: Partial<Read<K>>;
  /** Values of the form; missing fields get their defaults. */
  readonly toValues: (object: Partial<Read<K>>) => V;
  /** The whole object as written. Undefined fields are not sent. */
  readonly toBody: (values: V) => Write<K>;
  /** Validation while typing; the gateway validates again. */
  readonly validate?: FormRulesRecord<V, V>;
  /** Maps an API field to a form path; default: the same path. */
  readonly fieldOf?: (field: string) => string;
  /** Maps an API error without a field to a form field; null: none. */
  readonly fieldErrorOf?: (
    error: ApiError,
  ) => { readonly field: string; readonly text: string } | null;
  /** Fields with secrets, which are never stored in drafts. */
  readonly secrets?: readonly (keyof V)[];
  /** The same for secrets nested in other fields. Absent: none. */
  readonly withoutSecrets?: (values: V) => V;
  /** Query of the saving request, such as `{ adopt: 1 }`. */
  readonly query?: SendOptions["query"];
  /** Fields that show nested errors themselves, such as the configuration of a plugin, even of absent members. */
  readonly openFields?: readonly string[];
  /** Distinguishes drafts of new objects; default: one. */
  readonly draftKey?: string;
  readonly onSaved: (object: Read<K>) => void;
}

export interface ResourceForm<V extends object> {
  readonly form: UseFormReturnType<V>;
  /** For `<form onSubmit>`; FormPage accepts the whole object. */
  readonly submit: (event?: React.FormEvent<HTMLFormElement>) => void;
  readonly isSaving: boolean;
  readonly isDirty: boolean;
  /** An error without a field. */
  readonly failure: Error | null;
  /** Whether the values were restored from a draft. */
  readonly isRestored: boolean;
  /** Whether the draft lacks entered secrets. */
  readonly hasSecrets: boolean;
  /** Resets to the stored object. */
  readonly discard: () => void;
  /** Dialogs, rendered by FormPage. */
  readonly prompts: ReactNode;
}

/** The whole behavior of a resource form, without rendering. */
export function useResourceForm<K extends ResourceKey, V extends object>(
  options: ResourceFormOptions<K, V>,
): ResourceForm<V> {
  const { toValues, validate, template = {} as Partial<Read<K>> } = options;
  const draft = useDraft(options);
  const { origin, setOrigin } = draft;
  const start = toValues(origin?.value ?? template);
  const form = useForm<V>({
    initialValues: start,
    validateInputOnChange: true,
    ...(validate === undefined ? {} : { validate }),
    onValuesChange: draft.keep,
  });
  // Once: useForm treats its first values as unchanged.
  useState(() => {
    if (draft.values !== null) form.setValues({ ...start, ...draft.values });
  });
  const isDirty = form.isDirty();
  const reset = (object: Partial<Read<K>>) => {
    const values = toValues(object);
    form.setInitialValues(values);
    form.setValues(values);
    form.resetDirty(values);
  };
  const saving = useSaving(options, {
    form,
    origin,
    onSaved: (saved) => {
      draft.drop();
      setOrigin(saved);
      reset(saved.value);
      // The guard is removed when the form renders again.
      setTimeout(() => options.onSaved(saved.value));
    },
  });
  useLeaveGuard(isDirty && !saving.isSaving);
  return {
    form,
    isDirty,
    ...saving,
    isRestored: draft.isRestored,
    hasSecrets: options.secrets !== undefined || options.withoutSecrets !== undefined,
    discard: () => {
      draft.drop();
      saving.forget();
      setOrigin(options.source);
      reset(options.source?.value ?? template);
    },
    submit: form.onSubmit(saving.submit, (errors) =>
      form.getInputNode(Object.keys(errors)[0] ?? "")?.focus(),
    ),
  };
}

/** The draft, and the version that its form was opened with. */
function useDraft<K extends ResourceKey, V extends object>(options: ResourceFormOptions<K, V>) {
  const key = `${options.resource}:${options.source?.value.id ?? options.draftKey ?? "new"}`;
  const [stored] = useState(() => loadDraft<V>(key));
  const [isRestored, setRestored] = useState(stored !== null);
  const [origin, setOrigin] = useState(
    () => (stored?.origin as Versioned<Read<K>> | null | undefined) ?? options.source,
  );
  const { toValues, template = {} as Partial<Read<K>> } = options;
  const keep = useDebouncedCallback((values: V) => {
    // A saved object is no draft; saving resets the form to it.
    if (isSame(values, toValues(origin?.value ?? template))) dropDraft(key);
    else storeDraft(key, { values: toDraft(values, options), origin });
  }, 400);
  return {
    origin,
    setOrigin,
    isRestored,
    values: stored?.values ?? null,
    keep,
    drop: () => {
      keep.cancel();
      dropDraft(key);
      setRestored(false);
    },
  };
}

interface SavingDeps<K extends ResourceKey, V extends object> {
  readonly form: UseFormReturnType<V>;
  readonly origin: Versioned<Read<K>> | null;
  readonly onSaved: (saved: Versioned<Read<K>>) => void;
}

/** Sends the form's values and maps API errors to fields. */
function useSaving<K extends ResourceKey, V extends object>(
  options: ResourceFormOptions<K, V>,
  { form, origin, onSaved }: SavingDeps<K, V>,
) {
  const {
    resource,
    toValues,
    toBody,
    fieldOf,
    fieldErrorOf,
    query = {},
    openFields = [],
  } = options;
  const [failure, setFailure] = useState<Error | null>(null);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const { mutateAsync, isPending } = useSave(resource);
  const connection = useConnection();
  const bodyOf = (object: Partial<Read<K>>) => toBody(toValues(object)) as Document;

  const refuse = async (error: unknown, mine: Document): Promise<void> => {
    if (!(error instanceof ApiError)) return setFailure(error as Error);
    if (error.status === 412 && origin !== null) {
      const path = `/${resource}/${encodeURIComponent(origin.value.id)}`;
      const latest = await connection.send<Read<K>>(path);
      const theirs = bodyOf(latest.value);
      const found = { base: bodyOf(origin.value), mine, theirs, etag: latest.etag };
      // No field of this form changed, so there is nothing to merge.
      if (contested(found).length === 0) return save(mine, theirs, latest.etag);
      return setConflict(found);
    }
    const found = fieldErrorOf?.(error) ?? null;
    if (found !== null) {
      form.setFieldError(found.field, found.text);
      form.getInputNode(found.field)?.focus();
      return;
    }
    const field = error.field === null ? "" : toFormPath(fieldOf?.(error.field) ?? error.field);
    const isOpen = openFields.some((name) => field.startsWith(`${name}.`));
    if (!isOpen && !hasField(form.getValues(), field)) return setFailure(error);
    form.setFieldError(field, error.detail);
    // List inputs show the error of one item for the whole list.
    const list = field.replace(/\.\d+$/, "");
    if (list !== field) form.setFieldError(list, error.detail);
    (form.getInputNode(field) ?? form.getInputNode(list))?.focus();
  };

  const save = async (mine: Document, base: Document | null, etag: string | null) => {
    setFailure(null);
    try {
      const body = base === null ? (mine as Write<K>) : mergePatch(base, mine);
      onSaved(await mutateAsync({ id: origin?.value.id ?? null, body, etag, query }));
    } catch (error) {
      await refuse(error, mine).catch(setFailure);
    }
  };

  const merge = (merged: Document, { theirs, etag }: Conflict) => {
    setConflict(null);
    form.setValues(toValues(merged as Partial<Read<K>>));
    void save(merged, theirs, etag);
  };

  return {
    failure,
    isSaving: isPending,
    forget: () => setFailure(null),
    submit: (values: V) => {
      const base = origin === null ? null : bodyOf(origin.value);
      void save(toBody(values) as Document, base, origin?.etag ?? null);
    },
    prompts: (
      <ConflictPrompt conflict={conflict} onCancel={() => setConflict(null)} onMerged={merge} />
    ),
  };
}

function toDraft<K extends ResourceKey, V extends object>(
  values: V,
  { secrets = [], withoutSecrets }: ResourceFormOptions<K, V>,
): V {
  const copy = withoutSecrets?.(values) ?? { ...values };
  for (const name of secrets) delete copy[name];
  return copy;
}

/** Whether the form knows the found: `targets.0.port`. */
function hasField(values: object, path: string): boolean {
  let value: unknown = values;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !(name in value)) return false;
    value = (value as Record<string, unknown>)[name];
  }
  return true;
}

/** A copy of an object without unique fields, to clone it. */
export function cloneOf<T extends object>(object: T): Partial<T> {
  const copy = { ...object } as Record<string, unknown>;
  for (const field of ["id", "created_at", "updated_at"]) delete copy[field];
  for (const field of ["name", "label", "username"])
    if (typeof copy[field] === "string" && copy[field] !== "") copy[field] = `${copy[field]} copy`;
  return copy as Partial<T>;
}
