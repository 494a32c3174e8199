// The source of an import: a dropped or chosen file, or pasted text; sends nothing.
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
import { notifyError } from "../../api/changes.tsx";
import { useFileDrop } from "./file-drop.ts";
import { readFiles, readText, sizeInWords, type Source } from "./import-source.ts";

interface Props {
  readonly source: Source | null;
  readonly onChange: (source: Source | null) => void;
}

export function SourceField({ source, onChange }: Props) {
  const take = (files: readonly File[]) => {
    const [first] = files;
    if (first !== undefined)
      readFiles(files).then(onChange, () => notifyError(new Error(unreadable(first.name))));
  };
  const isOver = useFileDrop(take);
  if (source !== null && source.name !== null)
    return <ChosenFile source={source} isOver={isOver} onRemove={() => onChange(null)} />;
  return (
    <Stack gap="xs">
      {(source === null || isOver) && <DropArea isOver={isOver} onChoose={take} />}
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

/** React has no name for it. */
const FOLDER = { webkitdirectory: "" } as object;

/** A folder, or a missing or unreadable file. */
const unreadable = (name: string) => `${name} could not be read. Is it a file?`;

interface DropAreaProps {
  readonly isOver: boolean;
  readonly onChoose: (files: readonly File[]) => void;
}

/** The whole page accepts dropped files. */
function DropArea({ isOver, onChoose }: DropAreaProps) {
  return (
    <Paper withBorder p="lg" className={isOver ? "drop-area is-over" : "drop-area"}>
      <Stack align="center" gap="xs" ta="center">
        <IconFileUpload size={30} stroke={1.4} aria-hidden="true" />
        <Text size="sm">Drop files here</Text>
        <Group gap="xs" justify="center">
          <FileButton multiple onChange={onChoose}>
            {(props) => (
              <Button variant="default" {...props}>
                Choose files
              </Button>
            )}
          </FileButton>
          <FileButton multiple onChange={onChoose} inputProps={FOLDER}>
            {(props) => (
              <Button variant="default" {...props}>
                Choose a folder
              </Button>
            )}
          </FileButton>
        </Group>
        <Text size="xs" c="dimmed">
          gateway.yaml, kong.yaml, caddy.json, nginx.conf, database.sqlite, set-up.zip
        </Text>
      </Stack>
    </Paper>
  );
}

interface ChosenProps {
  readonly source: Source;
  readonly isOver: boolean;
  readonly onRemove: () => void;
}

function ChosenFile({ source, isOver, onRemove }: ChosenProps) {
  return (
    <Paper withBorder p="sm" className={isOver ? "drop-area is-over" : ""}>
      <Group gap="sm" wrap="nowrap">
        <IconFile size={22} stroke={1.4} aria-hidden="true" style={{ flexShrink: 0 }} />
        <Text size="sm" fw={600} style={{ flex: 1, minWidth: 0, overflowWrap: "anywhere" }}>
          {source.name}
        </Text>
        <Text size="sm" c="dimmed" style={{ flexShrink: 0 }}>
          {sizeInWords(source.size)}
        </Text>
        <CloseButton aria-label="Choose another file" onClick={onRemove} />
      </Group>
    </Paper>
  );
}
