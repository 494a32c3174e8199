// A form of one object: checks while typing, server errors at their fields, drafts, merging with others; draws no field.
import { type FormRulesRecord, type UseFormReturnType, useForm } from "@mantine/form";
import { useDebouncedCallback } from "@mantine/hooks";
import { type ReactNode, useState } from "react";
import { useSave } from "../api/changes.tsx";
import { useConnection } from "../api/connection-context.ts";
import { ApiError, toFormPath } from "../api/error.ts";
import { type Document, mergePatch } from "../api/merge-patch.ts";
import type { Versioned } from "../api/queries.ts";
import type { Read, ResourceKey, Write } from "../api/resources.ts";
import { type Conflict, ConflictPrompt } from "./conflict-prompt.tsx";
import { dropDraft, loadDraft, storeDraft } from "./drafts.ts";
import { useLeaveGuard } from "./leave-guard.tsx";

export interface ResourceFormOptions<K extends ResourceKey, V extends object> {
  readonly resource: K;
  /** The object and its version as they were read; null: the form creates one. */
  readonly source: Versioned<Read<K>> | null;
  /** Object to start from when one is created: a clone, or nothing. */
  readonly template?: Partial<Read<K>>;
  /** Fields of the form; whatever is missing in the object gets its default. */
  readonly toValues: (object: Partial<Read<K>>) => V;
  /** The whole object as it is written. Fields that stay undefined are not sent. */
  readonly toBody: (values: V) => Write<K>;
  /** Checks while typing; the gateway checks everything again. */
  readonly validate?: FormRulesRecord<V, V>;
  /** Where in the form a field of the API is; default: at the same path. */
  readonly fieldOf?: (field: string) => string;
  /** Fields that hold secrets: they are never put into drafts. */
  readonly secrets?: readonly (keyof V)[];
  readonly onSaved: (object: Read<K>) => void;
}

export interface ResourceForm<V extends object> {
  readonly form: UseFormReturnType<V>;
  /** For `<form onSubmit>`; FormPage takes the whole. */
  readonly submit: (event?: React.FormEvent<HTMLFormElement>) => void;
  readonly isSaving: boolean;
  readonly isDirty: boolean;
  /** A failure that belongs to no field. */
  readonly failure: Error | null;
  /** Whether what is shown was typed before and restored. */
  readonly isRestored: boolean;
  /** Back to what is stored. */
  readonly discard: () => void;
  /** Dialogs; FormPage draws them. */
  readonly prompts: ReactNode;
}

/** Everything that a form of a resource does beside showing fields. */
export function useResourceForm<K extends ResourceKey, V extends object>(
  options: ResourceFormOptions<K, V>,
): ResourceForm<V> {
  const { resource, toValues, toBody, validate, template = {} as Partial<Read<K>> } = options;
  const key = `${resource}:${options.source?.value.id ?? "new"}`;
  const [draft] = useState(() => loadDraft<V>(key));
  const [isRestored, setRestored] = useState(draft !== null);
  const [origin, setOrigin] = useState(
    () => (draft?.origin as Versioned<Read<K>> | null | undefined) ?? options.source,
  );
  const [failure, setFailure] = useState<Error | null>(null);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const start = toValues(origin?.value ?? template);
  const keep = useDebouncedCallback(
    (values: V) => storeDraft(key, { values: withoutSecrets(values, options.secrets), origin }),
    400,
  );
  const form = useForm<V>({
    initialValues: start,
    validateInputOnChange: true,
    ...(validate === undefined ? {} : { validate }),
    onValuesChange: keep,
  });
  // Once: useForm takes its first values as those that nobody has changed.
  useState(() => {
    if (draft !== null) form.setValues({ ...start, ...draft.values });
  });
  const isDirty = form.isDirty();
  const { mutateAsync, isPending } = useSave(resource);
  const connection = useConnection();
  useLeaveGuard(isDirty && !isPending);
  const bodyOf = (object: Partial<Read<K>>) => toBody(toValues(object)) as Document;

  const finish = (saved: Versioned<Read<K>>) => {
    keep.cancel?.();
    dropDraft(key);
    setRestored(false);
    setOrigin(saved);
    const values = toValues(saved.value);
    form.setInitialValues(values);
    form.setValues(values);
    form.resetDirty(values);
    // The guard is taken away when the form is drawn again.
    setTimeout(() => options.onSaved(saved.value));
  };

  const refuse = async (error: unknown, mine: Document): Promise<void> => {
    if (!(error instanceof ApiError)) return setFailure(error as Error);
    if (error.status === 412 && origin !== null) {
      const path = `/${resource}/${encodeURIComponent(origin.value.id)}`;
      const latest = await connection.send<Read<K>>(path);
      const theirs = bodyOf(latest.value);
      return setConflict({ base: bodyOf(origin.value), mine, theirs, etag: latest.etag });
    }
    const field =
      error.field === null ? null : toFormPath(options.fieldOf?.(error.field) ?? error.field);
    if (field === null || !hasField(form.getValues(), field)) return setFailure(error);
    form.setFieldError(field, error.detail);
    form.getInputNode(field)?.focus();
  };

  const save = async (mine: Document, base: Document | null, etag: string | null) => {
    setFailure(null);
    try {
      const body = base === null ? (mine as Write<K>) : mergePatch(base, mine);
      const id = origin?.value.id ?? null;
      finish(await mutateAsync({ id, body, etag }));
    } catch (error) {
      await refuse(error, mine).catch(setFailure);
    }
  };

  return {
    form,
    isSaving: isPending,
    isDirty,
    failure,
    isRestored,
    discard: () => {
      dropDraft(key);
      setRestored(false);
      setFailure(null);
      setOrigin(options.source);
      form.setValues(toValues(options.source?.value ?? template));
      form.resetDirty();
    },
    submit: form.onSubmit(
      (values) =>
        void save(
          toBody(values) as Document,
          origin === null ? null : bodyOf(origin.value),
          origin?.etag ?? null,
        ),
      (errors) => form.getInputNode(Object.keys(errors)[0] ?? "")?.focus(),
    ),
    prompts: (
      <ConflictPrompt
        conflict={conflict}
        onCancel={() => setConflict(null)}
        onMerged={(merged, { theirs, etag }) => {
          setConflict(null);
          form.setValues(toValues(merged as Partial<Read<K>>));
          void save(merged, theirs, etag);
        }}
      />
    ),
  };
}

function withoutSecrets<V extends object>(values: V, secrets: readonly (keyof V)[] = []): V {
  const copy = { ...values };
  for (const name of secrets) delete copy[name];
  return copy;
}

/** Whether the form knows the place: `targets.0.port`. */
function hasField(values: object, path: string): boolean {
  let value: unknown = values;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !(name in value)) return false;
    value = (value as Record<string, unknown>)[name];
  }
  return true;
}

/** An object to start a clone from: without what only one may have. */
export function cloneOf<T extends object>(object: T): Partial<T> {
  const copy = { ...object } as Record<string, unknown>;
  for (const field of ["id", "created_at", "updated_at"]) delete copy[field];
  for (const field of ["name", "label", "username"])
    if (typeof copy[field] === "string" && copy[field] !== "") copy[field] = `${copy[field]} copy`;
  return copy as Partial<T>;
}
