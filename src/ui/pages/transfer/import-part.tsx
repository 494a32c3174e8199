// Bringing a configuration in: first the source, then what would change, then the change; the gateway decides everything.
import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import type { Answer } from "../../api/connection.ts";
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
    <Alert color="blue" title="The configuration is kept in a file">
      <Text size="sm">
        This gateway was started with <code>serve --config</code>. To change it, change the file: it
        is taken into service within a second, if it is valid. An import would be refused.
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
  const [applied, setApplied] = useState<Answer<Changes> | null>(null);
  const format = chosen ?? source?.format ?? null;
  const wanted = source === null || format === null ? null : { source, format, mode, passphrase };
  // What was shown is no longer what would be sent.
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
        title="What to bring in"
        text="A document of Sluice, or what Kong, Caddy or Nginx Proxy Manager is configured with. Nothing changes before you have seen what would."
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

/** What a button brings about may be below the window. */
function ComesIntoView({ children }: { readonly children: ReactNode }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // Newer browsers give a promise back, which is no way to clean up.
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
        ? "It is larger than the gateway takes."
        : wanted.source.isEncrypted && wanted.passphrase === ""
          ? "The document is encrypted: enter its passphrase."
          : null;
  return (
    <Group>
      <Button
        disabled={wanted === null || problem !== null}
        loading={isPending}
        onClick={() => wanted !== null && onClick(wanted)}
      >
        Preview the changes
      </Button>
      {problem !== null && (
        <Text size="sm" c="dimmed">
          {problem}
        </Text>
      )}
    </Group>
  );
}
