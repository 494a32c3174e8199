// The import of a configuration: source, preview, apply; the gateway validates.
import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import type { ApiResponse } from "../../api/connection.ts";
import { useStatus } from "../../api/queries.ts";
import { Section } from "../../parts/page-layout.tsx";
import { ImportApplied } from "./import-applied.tsx";
import { ImportError } from "./import-error.tsx";
import { ImportOptions } from "./import-options.tsx";
import { ImportPreview } from "./import-preview.tsx";
import { type Format, isTooLarge, type Source } from "./import-source.ts";
import { type Changes, type Import, useSendImport } from "./send-import.ts";
import { SourceField } from "./source-field.tsx";

export function ImportPart() {
  const { data: status } = useStatus();
  if (status?.read_only === true) return <KeptInFile />;
  return <Flow />;
}

function KeptInFile() {
  return (
    <Alert color="blue" title="The configuration is managed by a file">
      <Text size="sm">
        This gateway was started with <code>serve --config</code>. Edit that file instead: the
        gateway applies it within a second if it is valid. Imports are rejected.
      </Text>
    </Alert>
  );
}

function Flow() {
  const [source, setSource] = useState<Source | null>(null);
  const [chosen, setChosen] = useState<Format | null>(null);
  const [mode, setMode] = useState<Import["mode"]>("merge");
  const [passphrase, setPassphrase] = useState("");
  const send = useSendImport();
  const preview = useMutation({ mutationFn: (wanted: Import) => send(wanted, true) });
  const [applied, setApplied] = useState<ApiResponse<Changes> | null>(null);
  const format = chosen ?? source?.format ?? null;
  const wanted = source === null || format === null ? null : { source, format, mode, passphrase };
  // The preview is outdated.
  const edit = (change: () => void) => {
    change();
    preview.reset();
    setApplied(null);
  };
  const choose = (next: Source | null) =>
    edit(() => {
      setSource(next);
      setChosen(null);
      setPassphrase("");
    });
  if (applied !== null) return <ImportApplied answer={applied} onAgain={() => choose(null)} />;
  return (
    <>
      <Section
        title="Source"
        text="A configuration file of Sluice, or the set-up of Kong, Caddy, nginx, Nginx Proxy Manager, Traefik, Docker Compose or HAProxy: one file, several, a folder or a zip. You see a preview before anything changes."
      >
        <Stack>
          <SourceField source={source} onChange={choose} />
          {source !== null && (
            <ImportOptions
              source={source}
              format={format}
              mode={mode}
              passphrase={passphrase}
              onFormat={(value) => edit(() => setChosen(value))}
              onMode={(value) => edit(() => setMode(value))}
              onPassphrase={(value) => edit(() => setPassphrase(value))}
            />
          )}
          <PreviewButton
            wanted={wanted}
            isPending={preview.isPending}
            onClick={(value) => preview.mutate(value)}
          />
        </Stack>
      </Section>
      {preview.error !== null && source !== null && (
        <ComesIntoView>
          <ImportError error={preview.error} text={source.text} />
        </ComesIntoView>
      )}
      {preview.data !== undefined && preview.variables !== undefined && (
        <ComesIntoView>
          <ImportPreview
            wanted={preview.variables}
            answer={preview.data}
            onAgain={() => preview.mutate(preview.variables)}
            onApplied={setApplied}
          />
        </ComesIntoView>
      )}
    </>
  );
}

/** The result of a button may be below the visible area. */
function ComesIntoView({ children }: { readonly children: ReactNode }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // Newer browsers return a promise, which is not a cleanup function.
    void place.current?.scrollIntoView({ block: "start" });
  }, []);
  return (
    <div ref={place} style={{ scrollMarginTop: 70 }}>
      {children}
    </div>
  );
}

interface PreviewButtonProps {
  readonly wanted: Import | null;
  readonly isPending: boolean;
  readonly onClick: (wanted: Import) => void;
}

function PreviewButton({ wanted, isPending, onClick }: PreviewButtonProps) {
  const problem =
    wanted === null
      ? null
      : isTooLarge(wanted.source, wanted.format)
        ? "The file is larger than the gateway accepts."
        : wanted.source.isEncrypted && wanted.passphrase === ""
          ? "The file is encrypted: enter its passphrase."
          : null;
  return (
    <Group>
      <Button
        disabled={wanted === null || problem !== null}
        loading={isPending}
        onClick={() => wanted !== null && onClick(wanted)}
      >
        Preview changes
      </Button>
      {problem !== null && (
        <Text size="sm" c="dimmed">
          {problem}
        </Text>
      )}
    </Group>
  );
}
