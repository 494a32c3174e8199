#!/usr/bin/env bash
# Publishes what `make release`, `make image` and `make packages` have built: pushes and signs the image, signs the sums, and creates the
# release on GitHub. With --dry-run it prints the commands and runs none of them.
set -euo pipefail
cd "$(dirname "$0")/.."

dry=no tag='' image='' dist=dist
while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) dry=yes && shift ;;
    --tag) tag=${2:?--tag needs a value} && shift 2 ;;
    --image) image=${2:?--image needs a value} && shift 2 ;;
    --from) dist=${2:?--from needs a value} && shift 2 ;;
    *) echo "publish: unknown flag $1; known are --tag, --image, --from, --dry-run" >&2 && exit 2 ;;
  esac
done
fail() { echo "publish: $*" >&2 && exit 1; }

[[ $tag =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "--tag must be a version such as v1.2.3, not \"$tag\""
[[ $image =~ ^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+$ ]] || fail "--image must be a name such as ghcr.io/owner/sluice, not \"$image\""
version=${tag#v}
[ -f "$dist/image/index.json" ] || fail "there is no $dist/image: make image"
# Of the image index: the digest that names all architectures.
digest=$(sed -n 's/.*"digest":"\(sha256:[0-9a-f]\{64\}\)".*/\1/p' "$dist/image/index.json")
grep -q "\"org.opencontainers.image.ref.name\":\"$version\"" "$dist/image/index.json" || fail "$dist/image is not version $version"
(cd "$dist/release" && sha256sum --check --quiet SHA256SUMS) || fail "$dist/release is not what SHA256SUMS says"
files=("$dist"/release/* "$dist"/packages/*)

run() {
  if [ "$dry" = yes ]; then printf '%q ' "$@" && echo; else "$@"; fi
}

names=("$version")
# A release candidate is not what "latest" means.
[[ $version == *-* ]] || names+=(latest)
for name in "${names[@]}"; do
  run skopeo copy --all --preserve-digests "oci:$dist/image:$version" "docker://$image:$name"
done
run cosign sign --yes "$image@$digest"
run cosign sign-blob --yes --bundle "$dist/SHA256SUMS.sigstore.json" "$dist/release/SHA256SUMS"
pre=()
[[ $version != *-* ]] || pre=(--prerelease)
run gh release create "$tag" --verify-tag --title "Sluice $version" --notes "See CHANGELOG.md." "${pre[@]}" "${files[@]}" "$dist/SHA256SUMS.sigstore.json"
