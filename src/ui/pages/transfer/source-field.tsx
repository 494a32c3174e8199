// Where the configuration comes from: a file that is dropped or chosen, or text that is pasted; sends nothing.
import {
  Button,
  CloseButton,
  FileButton,
  Group,
  Paper,
  Stack,
  Text,
  Textarea,
} from "@mantine/core";
import { IconFile, IconFileUpload } from "@tabler/icons-react";
import { type DragEvent, useState } from "react";
import { tellError } from "../../api/changes.tsx";
import { readFile, readText, sizeInWords, type Source } from "./import-source.ts";

interface Props {
  readonly source: Source | null;
  readonly onChange: (source: Source | null) => void;
}

export function SourceField({ source, onChange }: Props) {
  if (source !== null && source.name !== null)
    return <ChosenFile source={source} onRemove={() => onChange(null)} />;
  return (
    <Stack gap="xs">
      {source === null && <DropArea onChange={onChange} />}
      <Textarea
        label={source === null ? "Or paste it here" : "Pasted"}
        description="JSON or YAML"
        autosize
        minRows={4}
        maxRows={16}
        spellCheck={false}
        value={source?.text ?? ""}
        onChange={({ currentTarget: { value } }) => onChange(value === "" ? null : readText(value))}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } }}
      />
    </Stack>
  );
}

function DropArea({ onChange }: { readonly onChange: (source: Source) => void }) {
  const [isOver, setOver] = useState(false);
  const take = (file: File | null | undefined) => {
    if (file) readFile(file).then(onChange, tellError);
  };
  const over = (event: DragEvent) => {
    event.preventDefault();
    setOver(true);
  };
  return (
    <Paper
      withBorder
      p="lg"
      className={isOver ? "drop-area is-over" : "drop-area"}
      onDragEnter={over}
      onDragOver={over}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer.files[0]);
      }}
    >
      <Stack align="center" gap="xs" ta="center">
        <IconFileUpload size={30} stroke={1.4} aria-hidden="true" />
        <Text size="sm">Drop a file here</Text>
        <FileButton onChange={take}>
          {(props) => (
            <Button variant="default" {...props}>
              Choose a file
            </Button>
          )}
        </FileButton>
        <Text size="xs" c="dimmed">
          gateway.yaml, kong.yaml, caddy.json, database.sqlite
        </Text>
      </Stack>
    </Paper>
  );
}

interface ChosenProps {
  readonly source: Source;
  readonly onRemove: () => void;
}

function ChosenFile({ source, onRemove }: ChosenProps) {
  return (
    <Paper withBorder p="sm">
      <Group gap="sm" wrap="nowrap">
        <IconFile size={22} stroke={1.4} aria-hidden="true" style={{ flexShrink: 0 }} />
        <Text size="sm" fw={600} style={{ flex: 1, minWidth: 0, overflowWrap: "anywhere" }}>
          {source.name}
        </Text>
        <Text size="sm" c="dimmed" style={{ flexShrink: 0 }}>
          {sizeInWords(source.size)}
        </Text>
        <CloseButton aria-label="Take another file" onClick={onRemove} />
      </Group>
    </Paper>
  );
}
