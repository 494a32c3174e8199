// A JSON editor for a singleton, such as the settings; knows none by name.
import { Button, Group } from "@mantine/core";
import { useState } from "react";
import { useChange } from "../api/changes.tsx";
import { useConnection } from "../api/connection-context.ts";
import { type Document, isDocument, isSame, mergePatch } from "../api/merge-patch.ts";
import { useRead, type Versioned } from "../api/queries.ts";
import { CodeField } from "./code-field.tsx";
import { ErrorPanel } from "./error-panel.tsx";
import { useLeaveGuard } from "./leave-guard.tsx";
import { Can, PageHead, Section } from "./page-layout.tsx";
import { FormSkeleton } from "./skeletons.tsx";

interface Props {
  /** Below /api/v1. */
  readonly path: string;
  readonly title: string;
  readonly text: string;
}

export function JsonDocumentPage({ path, title, text }: Props) {
  const document = useRead<Document>(path);
  return (
    <>
      <PageHead title={title} text={text} />
      {document.data !== undefined ? (
        <Editor key={document.data.etag} path={path} source={document.data} />
      ) : document.isPending ? (
        <FormSkeleton />
      ) : (
        <ErrorPanel error={document.error} onRetry={() => document.refetch()} />
      )}
    </>
  );
}

function Editor({ path, source }: { readonly path: string; readonly source: Versioned<Document> }) {
  const { updated_at: _, ...stored } = source.value;
  const [value, setValue] = useState<Document>(stored);
  const [isValid, setValid] = useState(true);
  const connection = useConnection();
  const isDirty = !isSame(value, stored);
  const { mutate, isPending, error } = useChange<Document>({
    send: () => {
      const body = mergePatch(stored, value);
      return connection.send(`/${path}`, { method: "PATCH", body, ifMatch: source.etag });
    },
    touches: [path],
    done: () => "Saved",
    showsErrors: true,
  });
  useLeaveGuard(isDirty && !isPending);
  return (
    <Section
      title="Configuration"
      text="In the format of the API; see its reference for all fields."
    >
      {error !== null && <ErrorPanel error={error} title="Not saved" />}
      <CodeField
        label="As JSON"
        value={value}
        onValid={setValid}
        onChange={(next) => {
          if (isDocument(next)) setValue(next);
        }}
      />
      <Can needs="admin">
        <Group justify="flex-end" mt="md">
          <Button onClick={() => mutate()} loading={isPending} disabled={!isDirty || !isValid}>
            Save
          </Button>
        </Group>
      </Can>
    </Section>
  );
}
