// The options of an import: format, merge or replace, and the passphrase of an encrypted file.
import { Alert, PasswordInput, Radio, Select, Stack } from "@mantine/core";
import { type Format, formats, type Source } from "./import-source.ts";

type Mode = "merge" | "replace";

interface Props {
  readonly source: Source;
  readonly format: Format | null;
  readonly mode: Mode;
  readonly passphrase: string;
  readonly onFormat: (format: Format | null) => void;
  readonly onMode: (mode: Mode) => void;
  readonly onPassphrase: (passphrase: string) => void;
}

export function ImportOptions(props: Props) {
  const { source, format, mode, passphrase, onFormat, onMode, onPassphrase } = props;
  const found = formats.find(({ value }) => value === source.format)?.label;
  return (
    <Stack maw={640}>
      {source.problem !== null && <Alert color="yellow">{source.problem}</Alert>}
      <Select
        label="Format"
        description={found === undefined ? "Format not recognized" : `Detected: ${found}`}
        placeholder="Choose"
        data={formats.map((entry) => ({ ...entry }))}
        value={format}
        onChange={(value) =>
          onFormat(formats.find((entry) => entry.value === value)?.value ?? null)
        }
        allowDeselect={false}
      />
      {source.isEncrypted && (
        <PasswordInput
          label="Passphrase"
          description="The passphrase of the export"
          autoComplete="off"
          value={passphrase}
          onChange={(event) => onPassphrase(event.currentTarget.value)}
        />
      )}
      <Radio.Group
        label="Existing objects"
        value={mode}
        onChange={(value) => onMode(value === "replace" ? "replace" : "merge")}
      >
        <Stack gap="xs" mt={6}>
          <Radio
            value="merge"
            label="Merge"
            description="Adds and updates objects. Objects that the file does not contain stay."
          />
          <Radio
            value="replace"
            label="Replace"
            description="Also deletes objects that the file's lists do not contain. Lists that the file omits stay."
          />
        </Stack>
      </Radio.Group>
    </Stack>
  );
}
