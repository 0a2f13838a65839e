"""The named configurations, and a reader for the part of YAML that configuration files use."""
import dataclasses
import pathlib

CLASSES = ("car", "truck", "construction_vehicle", "bus", "trailer", "barrier", "motorcycle",
           "bicycle", "pedestrian", "traffic_cone")  # fmt: skip
POINT_CLOUD_RANGE = ((-51.2, -51.2, -5.0), (51.2, 51.2, 3.0))
POSITION_RANGE = ((-61.2, -61.2, -10.0), (61.2, 61.2, 10.0))


@dataclasses.dataclass(frozen=True)
class Config:
    backbone: str = "resnet50"  # resnet18, resnet50, resnet101, vovnet99
    style: str = "pytorch"  # where a ResNet bottleneck strides: pytorch 3x3, caffe first 1x1
    base_width: int = 64  # of a ResNet
    trainable_norm: bool = False  # scale and shift of the backbone's norms; statistics never
    feature: str = "p4"  # p4: neck over the last two stages; c5: the last stage alone
    height: int = 256
    width: int = 704
    queries: int = 900
    frames: int = 2
    cameras: int = 6
    classes: int = 10
    embed: int = 256
    heads: int = 8
    layers: int = 6
    feedforward: int = 2048
    dropout: float = 0.1
    cross_attention_dropout: float = 0.1  # on the probabilities
    depth_bins: int = 64
    depth_start: float = 1.0
    multiview_sine: bool = True  # the three-axis sine embedding and its adapter
    code_weights: tuple = (1.0,) * 10
    match_weighted: bool = False  # matcher over all ten dims times the code weights
    denoising: bool = False
    groups: int = 10
    noise_scale: float = 1.0
    split: float = 0.75
    epochs: int = 24
    total_batch: int = 8
    lr: float = 2e-4

    @property
    def views(self):
        return self.frames * self.cameras

    @property
    def hidden(self):
        """Width of the position encoder and the sine adapter."""
        return 4 * self.embed

    @property
    def axis_channels(self):
        """Channels of the sine embeddings for each of their three axes."""
        return self.embed // 2


V299 = Config(backbone="vovnet99", trainable_norm=True, height=320, width=800)
FLASH = Config(
    queries=1500,
    multiview_sine=False,
    cross_attention_dropout=0.0,
    denoising=True,
    code_weights=(2.0,) * 2 + (1.0,) * 8,
    match_weighted=True,
    epochs=60,
)
replace = dataclasses.replace

CONFIGS = {
    "petrv2_vovnet_gridmask_p4_800x320": V299,
    "petrv2_vovnet_gridmask_p4_1600x640": replace(V299, height=640, width=1600),
    "petrv2_vovnet_gridmask_p4_800x320_dn": replace(V299, denoising=True),
    "petrv2_r50_gridmask_p4_704x256_dn_flash_nuim": replace(FLASH, total_batch=16, lr=4e-4),
    "petrv2_r50_gridmask_p4_1600x640_dn_flash_nuim": replace(FLASH, height=640, width=1600),
    "petrv2_r101_gridmask_p4_1600x640_dn_flash_nuim": replace(
        FLASH, backbone="resnet101", height=640, width=1600
    ),
    "petrv2_r50_p4_256x704": Config(),
    "petrv2_r50_c5_256x704": Config(feature="c5"),
    "petrv2_r18_p4_256x704": Config(backbone="resnet18"),
}
CONFIG_FOLDER = pathlib.Path(__file__).resolve().parents[2] / "training" / "configs"



def split_items(text):
    """At commas outside brackets."""
    items, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            items.append(text[start:at])
            start = at + 1
    return [item for item in items + [text[start:]] if item.strip()]


def value_of(text):
    text = text.strip()
    if text.startswith("["):
        return tuple(value_of(item) for item in split_items(text[1:-1]))
    if text.startswith("{"):
        pairs = (item.partition(":") for item in split_items(text[1:-1]))
        return {key.strip(): value_of(value) for key, _, value in pairs}
    if text[:1] in ("'", '"'):
        return text[1:-1]
    words = {"true": True, "false": False, "null": None, "~": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def read_yaml(text):
    """Nested maps of scalars and inline lists and maps; enough for configuration files."""
    root = {}
    stack = [(-1, root)]
    for line in text.splitlines():
        line = line.split(" #")[0].rstrip()
        if not line.strip() or line.lstrip().startswith(("#", "---")):
            continue
        indent = len(line) - len(line.lstrip())
        key, _, value = line.strip().partition(":")
        while stack[-1][0] >= indent:
            stack.pop()
        if value.strip():
            stack[-1][1][key] = value_of(value)
        else:
            stack[-1][1][key] = child = {}
            stack.append((indent, child))
    return root


RENAMED = {"ffn": "feedforward", "sine": "multiview_sine"}
WITHOUT_EFFECT_HERE = {"grid_mask_probability", "decoder_checkpoints"}


def from_yaml(path):
    """A file with maps `model` and `train`. A model key that is unknown here is an error."""
    content = read_yaml(pathlib.Path(path).read_text())
    model, train = dict(content["model"]), content.get("train", {})
    fields = {}
    backbone, image = model.pop("backbone"), model.pop("image")
    fields["backbone"] = f"{backbone['kind']}{backbone['depth']}"
    for key in ("style", "base_width", "trainable_norm"):
        if key in backbone:
            fields[key] = backbone[key]
    fields["height"], fields["width"] = image["height"], image["width"]
    noise = model.pop("denoising", None)
    if noise:
        fields.update(denoising=True, **noise)
    fields["match_weighted"] = model.pop("matcher", None) == "weighted"
    known = {field.name for field in dataclasses.fields(Config)}
    for key, value in model.items():
        if key not in WITHOUT_EFFECT_HERE:
            fields[RENAMED.get(key, key)] = value
    if unknown := fields.keys() - known:
        raise SystemExit(f"{path}: unknown key {', '.join(sorted(unknown))}")
    if "code_weights" in fields:
        fields["code_weights"] = tuple(float(w) for w in fields["code_weights"])
    for key, name in (("lr", "lr"), ("epochs", "epochs"), ("reference_batch", "total_batch")):
        if key in train:
            fields[name] = train[key]
    return Config(**fields)


def named(name, **changes):
    """One of the above, or a YAML file by its path or by its name in the folder of the trainer."""
    config = CONFIGS.get(name)
    if config is None:
        paths = pathlib.Path(name), CONFIG_FOLDER / f"{name}.yaml"
        path = next((p for p in paths if p.suffix == ".yaml" and p.is_file()), None)
        if path is None:
            raise SystemExit(f"no configuration {name}; known: {', '.join(CONFIGS)}")
        config = from_yaml(path)
    return replace(config, **{k: v for k, v in changes.items() if v is not None})
