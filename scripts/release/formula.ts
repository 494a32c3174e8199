// The Homebrew formula of a release; knows only its parameters.

export interface FormulaFile {
  readonly url: string;
  readonly sha256: string;
}

/** `files`: by target, `darwin-arm64`. */
export function formulaOf(version: string, files: ReadonlyMap<string, FormulaFile>): string {
  const system = (name: string, os: string) => `  ${name} do
${processor("on_arm", files.get(`${os}-arm64`))}
${processor("on_intel", files.get(`${os}-x64`))}
  end`;
  return `# Written by "make packages".
class Sluice < Formula
  desc "Self-hosted HTTP and TCP gateway, configured at run time"
  homepage "${new URL(files.get("linux-x64")?.url ?? "").origin}"
  version "${version}"
  license "Apache-2.0"

${system("on_macos", "darwin")}

${system("on_linux", "linux")}

  def install
    bin.install Dir["sluice-*"].first => "sluice"
  end

  service do
    run [opt_bin/"sluice", "serve", "--data-dir", var/"lib/sluice"]
    keep_alive true
    log_path var/"log/sluice.log"
    error_log_path var/"log/sluice.log"
  end

  test do
    assert_match "sluice #{version}", shell_output("#{bin}/sluice version")
  end
end
`;
}

const processor = (name: string, file: FormulaFile | undefined) => `    ${name} do
      url "${file?.url}", using: :nounzip
      sha256 "${file?.sha256}"
    end`;
