from torchvision.models.detection.faster_rcnn import FastRCNNPredictor

# roi_heads.box_predictor: a new FastRCNNPredictor(old.cls_score.in_features, 2), new weights
model.roi_heads.box_predictor = FastRCNNPredictor(
    model.roi_heads.box_predictor.cls_score.in_features, 2
)
