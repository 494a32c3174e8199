// The role input, with the permissions of each role; knows neither users nor tokens.
import { Radio, Stack } from "@mantine/core";
import { roleTexts } from "./roles.ts";

interface Props {
  readonly label?: string;
  readonly description?: string;
  readonly value?: string;
  readonly onChange?: (value: string) => void;
  readonly error?: React.ReactNode;
}

/** Takes `form.getInputProps("role")`. */
export function RoleField({ label = "Role", ...rest }: Props) {
  return (
    <Radio.Group label={label} required {...rest}>
      <Stack gap="xs" mt={6}>
        {Object.entries(roleTexts).map(([role, text]) => (
          <Radio key={role} value={role} label={role} description={text} />
        ))}
      </Stack>
    </Radio.Group>
  );
}
