// The frame of a form: head, notices, fields, and a sticky footer; knows no field.
import { Alert, Anchor, Box, Button, Drawer, Group, Paper, Stack } from "@mantine/core";
import type { ComponentType, FormEvent, ReactNode } from "react";
import { Link } from "wouter";
import { capitalised } from "../api/changes.tsx";
import { ApiError } from "../api/error.ts";
import { ReadOnlyContext, useResource } from "../api/queries.ts";
import type { Versioned } from "../api/queries.ts";
import { pageNameOf, type Read, type ResourceKey, resources, type Role } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";
import { ErrorPanel } from "./error-panel.tsx";
import { Can, PageHead } from "./page-layout.tsx";
import { cloneOf, type ResourceForm } from "./resource-form.tsx";
import { FormSkeleton } from "./skeletons.tsx";

interface FormPageProps {
  readonly title: ReactNode;
  readonly text?: ReactNode;
  /** The list: `{ href: "/ui/services", label: "Services" }`. None for singletons. */
  readonly parent?: { readonly href: string; readonly label: string };
  readonly form: Omit<ResourceForm<never>, "form">;
  /** Least role that may save. */
  readonly needs: Role;
  readonly isNew: boolean;
  readonly actions?: ReactNode;
  /** More buttons beside Save. */
  readonly footer?: ReactNode;
  /** Content above the form, such as live state. */
  readonly before?: ReactNode;
  /** Fields, in Sections. */
  readonly children: ReactNode;
}

/** A page with a form. Users without permission see disabled fields. */
export function FormPage(props: FormPageProps) {
  const { title, text, parent, form, needs, isNew, actions, before, children } = props;
  return (
    <Box maw={920}>
      <PageHead
        title={title}
        text={text}
        actions={actions}
        {...(parent === undefined ? {} : { parent })}
      />
      {form.isRestored && (
        <Alert color="blue" mb="md" title="Draft restored">
          <Group justify="space-between">
            This form shows unsaved input from a draft.
            {form.hasSecrets && " Secrets are not stored in drafts: enter them again."}
            <Button size="xs" variant="default" onClick={form.discard}>
              Discard
            </Button>
          </Group>
        </Alert>
      )}
      {before}
      <form
        onSubmit={form.submit}
        noValidate
        aria-label={typeof title === "string" ? title : undefined}
      >
        <Can needs={needs} otherwise={<Fields isOff>{children}</Fields>}>
          <Fields>{children}</Fields>
        </Can>
        <Can needs={needs}>
          <Footer form={form} isNew={isNew} back={parent?.href ?? null}>
            {props.footer}
          </Footer>
        </Can>
      </form>
      {form.prompts}
    </Box>
  );
}

function Fields({
  isOff = false,
  children,
}: {
  readonly isOff?: boolean;
  readonly children: ReactNode;
}) {
  return (
    <fieldset disabled={isOff} style={{ border: 0, margin: 0, padding: 0, minWidth: 0 }}>
      {children}
    </fieldset>
  );
}

interface FooterProps {
  readonly form: FormPageProps["form"];
  readonly isNew: boolean;
  /** Null: stay on the page. */
  readonly back: string | null;
  readonly children: ReactNode;
}

function Footer({ form, isNew, back, children }: FooterProps) {
  return (
    <Paper withBorder p="sm" className="sticky-footer">
      <Stack gap="sm">
        {form.failure !== null && <ErrorPanel error={form.failure} title="Not saved" />}
        <Group justify="flex-end">
          {back === null ? (
            <Button variant="default" disabled={!form.isDirty} onClick={form.discard}>
              Discard changes
            </Button>
          ) : (
            <Button component={Link} href={back} variant="default">
              {form.isDirty ? "Cancel" : "Back"}
            </Button>
          )}
          {children}
          <Button type="submit" loading={form.isSaving} disabled={!isNew && !form.isDirty}>
            {isNew ? "Create" : "Save"}
          </Button>
        </Group>
      </Stack>
    </Paper>
  );
}

interface FormDrawerProps {
  readonly opened: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly onSubmit: (event: FormEvent<HTMLFormElement>) => void;
  readonly isSaving?: boolean;
  readonly failure?: Error | null;
  /** Text of the button; default: Save. */
  readonly label?: string;
  readonly children: ReactNode;
}

/** A small form in a drawer. */
export function FormDrawer(props: FormDrawerProps) {
  const {
    opened,
    onClose,
    title,
    onSubmit,
    isSaving = false,
    failure = null,
    label = "Save",
  } = props;
  return (
    <Drawer opened={opened} onClose={onClose} title={title} position="right" size="md">
      <form onSubmit={onSubmit} noValidate aria-label={title}>
        <Stack>
          {props.children}
          {failure !== null && <ErrorPanel error={failure} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={isSaving}>
              {label}
            </Button>
          </Group>
        </Stack>
      </form>
    </Drawer>
  );
}

/** The initial state of a form: one of the two is null. */
export interface FormStart<T> {
  readonly source: Versioned<T> | null;
  readonly template: Partial<T>;
}

interface LoaderProps<K extends ResourceKey> {
  readonly resource: K;
  /** `new`: the form creates, and `?from=ID` in the address names what it clones. */
  readonly id: string;
  readonly children: (start: FormStart<Read<K>>) => ReactNode;
}

/** Loads the object of a form before rendering it. */
export function ResourceLoader<K extends ResourceKey>({ resource, id, children }: LoaderProps<K>) {
  const isNew = id === "new";
  const from = isNew ? new URLSearchParams(location.search).get("from") : id;
  const object = useResource(resource, from);
  if (from === null) return children({ source: null, template: {} });
  if (object.data !== undefined)
    return isNew
      ? children({ source: null, template: cloneOf(object.data.value) })
      : asManaged(object.data.value, children({ source: object.data, template: {} }));
  if (object.isPending) return <FormSkeleton />;
  return <LoadError resource={resource} error={object.error} onRetry={() => object.refetch()} />;
}

/** What a source manages is read-only: the source would undo a change. */
function asManaged({ managed_by }: { readonly managed_by?: string }, page: ReactNode): ReactNode {
  if (managed_by === undefined) return page;
  return (
    <ReadOnlyContext value>
      <Alert color="blue" mb="md" maw={920} title={`Managed by ${managed_by}`}>
        It follows{" "}
        {managed_by.startsWith("files") ? "a configuration file" : "the labels of a container"}, and
        is changed there. See{" "}
        <Anchor component={Link} href={pagePath("discovered")} size="sm" underline="always">
          Discovered
        </Anchor>
        .
      </Alert>
      {page}
    </ReadOnlyContext>
  );
}

/** The page of a resource: its list, and the form of one object or a new one. */
export const resourcePage = <K extends ResourceKey>(
  resource: K,
  List: ComponentType,
  Form: ComponentType<FormStart<Read<K>>>,
) =>
  function ResourcePage({ id }: { readonly id: string | null }) {
    if (id === null) return <List />;
    return (
      <ResourceLoader resource={resource} id={id}>
        {(start) => <Form key={id} {...start} />}
      </ResourceLoader>
    );
  };

interface LoadErrorProps {
  readonly resource: ResourceKey;
  readonly error: unknown;
  readonly onRetry: () => unknown;
}

/** The error page of a missing object, with a link to the list. */
function LoadError({ resource, error, onRetry }: LoadErrorProps) {
  const { word, plural } = resources[resource];
  const isGone = error instanceof ApiError && error.status === 404;
  const list = { href: pagePath(pageNameOf(resource)), label: capitalised(plural) };
  return (
    <>
      <PageHead
        title={isGone ? `The ${word} does not exist` : `The ${word} cannot be loaded`}
        parent={list}
      />
      <ErrorPanel
        error={error}
        {...(isGone ? { title: "It may have been deleted, or the URL is wrong" } : { onRetry })}
      />
    </>
  );
}
